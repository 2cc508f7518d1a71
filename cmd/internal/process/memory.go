package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PeakResident is the most memory that a running process has had resident, in bytes. It is known on Linux only. (What
// the system reports of an ended process is the greatest of its own, of its children's and of what its parent had when
// it was started.)
func PeakResident(pid int) (bytes int64, known bool) { return statusBytes(pid, "VmHWM:") }

// Resident is the memory that a running process has resident, in bytes. It is known on Linux only.
func Resident(pid int) (bytes int64, known bool) { return statusBytes(pid, "VmRSS:") }

// statusBytes reads a field of /proc/PID/status, which counts in KiB.
func statusBytes(pid int, field string) (bytes int64, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	_, rest, found := strings.Cut(string(text), field)
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, false
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err == nil
}
