package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// strangerCommand, as the only argument, makes this program the other user that a siege starts: it reads a
// strangerTask and writes a strangerFinding.
const strangerCommand = "try-as-stranger"

// A strangerTask is what another user tries to read.
type strangerTask struct {
	Probe  string   // a file that everybody may read
	Paths  []string // files, folders and sockets that nobody else may use
	Engine string   // addresses, host:port
	Admin  string
	API    string
	PIDs   []int // processes that nobody else may look into
}

// A strangerFinding is what came of it.
type strangerFinding struct {
	UID   int
	Probe bool           // the probe was read, so that the paths above it can be passed
	Tried map[string]int // by kind
	Read  []string       // what could be read or written, and why that is wrong
	Seen  string         // what everybody may see of the processes: it must hold no secret
}

func tryAsStranger(in io.Reader, out io.Writer) error {
	var task strangerTask
	if err := json.NewDecoder(in).Decode(&task); err != nil {
		return err
	}
	f := strangerFinding{UID: os.Getuid(), Tried: map[string]int{}}
	_, err := os.ReadFile(task.Probe)
	f.Probe = err == nil
	for _, path := range task.Paths {
		f.tryPath(path)
	}
	for _, pid := range task.PIDs {
		f.tryProcess(pid)
	}
	f.tryEngine(task.Engine)
	f.tryAdmin(task.Admin)
	for _, authorization := range garbage {
		f.request("API", http.MethodPost, "http://"+task.API+queryPath, string(smallBody), "", authorization)
	}
	return json.NewEncoder(out).Encode(f)
}

func (f *strangerFinding) try(kind, what string, succeeded bool) {
	f.Tried[kind]++
	if succeeded && len(f.Read) < 10*maxExamples {
		f.Read = append(f.Read, kind+": "+what)
	}
}

// tryPath opens a path for reading and for writing. A folder is listed, and a file made in it.
func (f *strangerFinding) tryPath(path string) {
	file, err := os.Open(path)
	f.try("files", "reads "+path, err == nil)
	if err == nil {
		file.Close()
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		connection, err := net.Dial("unix", path)
		f.try("files", "connects to "+path, err == nil)
		if err == nil {
			connection.Close()
		}
	}
	file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	f.try("files", "writes "+path, err == nil)
	if err == nil {
		file.Close()
	}
	made := filepath.Join(path, "stranger")
	f.try("files", "makes a file in "+path, os.WriteFile(made, nil, 0o600) == nil)
}

func (f *strangerFinding) tryProcess(pid int) {
	folder := fmt.Sprintf("/proc/%d/", pid)
	for _, name := range []string{"environ", "maps", "mem", "auxv", "stack"} {
		text, err := os.ReadFile(folder + name)
		f.try("processes", folder+name, err == nil && len(text) > 0)
	}
	_, err := os.ReadDir(folder + "fd")
	f.try("processes", folder+"fd", err == nil)
	for _, name := range []string{"cmdline", "status", "comm"} {
		text, _ := os.ReadFile(folder + name) // gone, or hidden
		f.Seen += string(text)
	}
}

// garbage are credentials that nobody has.
var garbage = []string{"", "Bearer siege", "Bearer ", "Basic ZGVmYXVsdDo=", "Basic cnVubGVuczpydW5sZW5z"}

func (f *strangerFinding) tryEngine(address string) {
	for _, path := range []string{"/", "/ping", "/play", "/dashboard", "/replicas_status", "/binary", "/metrics",
		"/?query=SELECT+4217", "/?query=SELECT+4217&user=default", "/?query=SELECT+4217&user=runlens&password=runlens",
		"/?query=SELECT+*+FROM+file('/etc/passwd')&user=default"} {
		for _, authorization := range garbage {
			f.request("engine", http.MethodGet, "http://"+address+path, "", "", authorization)
		}
	}
	f.request("engine", http.MethodPost, "http://"+address+"/", "SELECT 4217", "", "")
}

// tryAdmin asks the admin address for what only the owner of the data directory may read, and from a page of another
// site, under a name that leads here, for anything.
func (f *strangerFinding) tryAdmin(address string) {
	base := "http://" + address
	for _, authorization := range garbage {
		f.request("admin", http.MethodGet, base+"/usage", "", "", authorization)
		for _, body := range []string{string(smallBody), ""} {
			f.request("admin", http.MethodPost, base+"/explain?organization_id="+mainOrganization, body, "", authorization)
		}
		for _, profile := range []string{"", "heap", "goroutine?debug=2", "allocs", "symbol", "cmdline"} {
			f.request("admin", http.MethodGet, base+"/debug/pprof/"+profile, "", "", authorization)
		}
	}
	for _, path := range []string{"/metrics", "/usage", "/debug/pprof/heap"} {
		f.request("admin", http.MethodGet, base+path, "", "siege.example", "")
	}
}

var strangerClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// request sends a request, to the host that it names unless another one is given. Any answer with 200 is wrong.
func (f *strangerFinding) request(kind, method, url, body, host, authorization string) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		f.try(kind, fmt.Sprintf("%s: %v", url, err), true)
		return
	}
	request.Host = host
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	if kind == "API" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := strangerClient.Do(request)
	if err != nil {
		f.try(kind, "", false)
		return
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	what := fmt.Sprintf("%s %s under %q with %q: %d %.60q", method, request.URL.Path, host, authorization,
		response.StatusCode, text)
	f.try(kind, what, response.StatusCode == http.StatusOK)
}
