package tools_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

const (
	serve   = "Deployment/runlens-serve"
	worker  = "Deployment/runlens-worker"
	policy  = "NetworkPolicy/runlens"
	monitor = "ServiceMonitor/runlens"
	ingress = "Ingress/runlens"
)

// changes are what each value changes: the manifest then has the text, and has not with 'everything'.
var changes = []struct{ values, manifest, has string }{
	{"image: { repository: example.com/r, tag: '1.2', pullPolicy: Always }", serve, `"image":"example.com/r:1.2",` +
		`"imagePullPolicy":"Always"`},
	{"image: { tag: '1.2' }", worker, `"image":"runlens:1.2"`},
	{"imagePullSecrets: [{ name: pull }]", worker, `"imagePullSecrets":[{"name":"pull"}]`},
	{"clickhouse: { url: 'https://runlens@c:9999/r' }", worker, `"value":"https://runlens@c:9999/r"`},
	{"clickhouse: { url: 'https://runlens@c:9999/r' }", policy, `{"port":9999}`},
	{"clickhouse: { url: 'https://runlens@c/r' }", policy, `{"port":8443}`},
	{"clickhouse: { url: 'http://runlens@c/r' }", policy, `{"port":8123}`},
	{"clickhouse: { existingSecret: other, passwordKey: pass }", serve, `"items":[{"key":"pass","path":` +
		`"clickhouse-password"}],"name":"other"`},
	{"admin: { existingSecret: other, tokenKey: word }", worker, `"items":[{"key":"word","path":"admin-token"}],` +
		`"name":"other"`},
	{"admin: { existingSecret: other, tokenKey: word }", monitor, `"credentials":{"key":"word","name":"other"}`},
	{"redis: { existingSecret: other, urlKey: address }", serve, `"secretKeyRef":{"key":"address","name":"other"}`},
	{"redis: { port: 6380 }", policy, `{"port":6380}`},
	{"serve: { autoscaling: { enabled: false }, replicas: 3 }", serve, `"replicas":3`},
	{"serve: { drainSeconds: 60 }", serve, `"name":"RUNLENS_DRAIN_TIMEOUT","value":"60s"`},
	{"serve: { drainSeconds: 60 }", serve, `"terminationGracePeriodSeconds":80`},
	{"serve: { trustedProxies: 10.1.0.0/16 }", serve, `"name":"RUNLENS_TRUSTED_PROXIES","value":"10.1.0.0/16"`},
	{"serve: { env: { RUNLENS_ORG_CONCURRENCY: '8' } }", serve, `"name":"RUNLENS_ORG_CONCURRENCY","value":"8"`},
	{"serve: { resources: { limits: { memory: 3Gi } } }", serve, `"limits":{"memory":"3Gi"}`},
	{"serve: { resources: { requests: { cpu: '2' } } }", serve, `"cpu":"2"`},
	{"serve: { resources: { requests: { memory: 2Gi } } }", serve, `"memory":"2Gi"`},
	{"serve: { autoscaling: { minReplicas: 3, maxReplicas: 4 } }", "HorizontalPodAutoscaler/runlens-serve",
		`"maxReplicas":4,"metrics"`},
	{"serve: { autoscaling: { minReplicas: 3 } }", "HorizontalPodAutoscaler/runlens-serve", `"minReplicas":3`},
	{"serve: { autoscaling: { targetCPUUtilizationPercentage: 55 } }", "HorizontalPodAutoscaler/runlens-serve",
		`"averageUtilization":55`},
	{"serve: { disruptionBudget: { maxUnavailable: 2 } }", "PodDisruptionBudget/runlens-serve", `"maxUnavailable":2`},
	{"serve: { nodeSelector: { disk: ssd } }", serve, `"nodeSelector":{"disk":"ssd"}`},
	{"serve: { tolerations: [{ key: only, operator: Exists }] }", serve, `"tolerations":[{"key":"only"`},
	{"serve: { affinity: { nodeAffinity: {} } }", serve, `"affinity":{"nodeAffinity":{}}`},
	{"service: { type: NodePort, port: 8081 }", "Service/runlens", `"port":8081`},
	{"service: { type: NodePort }", "Service/runlens", `"type":"NodePort"`},
	{"ingress: { controller: haproxy }", ingress, `{"haproxy.org/load-balance":"hdr(Authorization)"}`},
	{"ingress: { controller: ingress-nginx }", ingress, `"nginx.ingress.kubernetes.io/upstream-hash-by":` +
		`"$http_authorization"`},
	{"ingress: { className: other }", ingress, `"ingressClassName":"other"`},
	{"ingress: { host: b.example, tlsSecret: other }", ingress, `"tls":[{"hosts":["b.example"],"secretName":"other"}]`},
	{"ingress: { host: b.example }", ingress, `"host":"b.example"`},
	{"ingress: { annotations: { a: b } }", ingress, `{"a":"b","nginx.org/lb-method":` +
		`"hash $http_authorization consistent"}`},
	{"worker: { source: 'postgres://u@db:6432/p' }", worker, `"value":"postgres://u@db:6432/p"`},
	{"worker: { source: 'postgres://u@db:6432/p' }", policy, `{"port":6432}`},
	{"worker: { existingSecret: other, passwordKey: pass }", worker, `"secretKeyRef":{"key":"pass","name":"other"}`},
	{"worker: { env: { RUNLENS_OVERLAP: 20s } }", worker, `"name":"RUNLENS_OVERLAP","value":"20s"`},
	{"worker: { resources: { limits: { memory: 3Gi } } }", worker, `"limits":{"memory":"3Gi"}`},
	{"worker: { resources: { requests: { cpu: '2', memory: 2Gi } } }", worker, `"requests":{"cpu":"2","memory":"2Gi"}`},
	{"worker: { nodeSelector: { disk: ssd } }", worker, `"nodeSelector":{"disk":"ssd"}`},
	{"worker: { tolerations: [{ key: only, operator: Exists }] }", worker, `"tolerations":[{"key":"only"`},
	{"worker: { affinity: { nodeAffinity: {} } }", worker, `"affinity":{"nodeAffinity":{}}`},
	{"networkPolicy: { apiFrom: [{ podSelector: {} }] }", policy, `"from":[{"podSelector":{}}],"ports":[{"port":8080}]`},
	{"networkPolicy: { metricsFrom: [{ podSelector: {} }] }", policy, "" +
		`"from":[{"podSelector":{}}],"ports":[{"port":9090}`},
	{"serviceMonitor: { interval: 30s, labels: { release: p } }", monitor, `"interval":"30s"`},
	{"serviceMonitor: { labels: { release: p } }", monitor, `"release":"p"`},
}

// removals are values without which a manifest of 'everything', or a part of it, is gone.
var removals = []struct{ values, manifest, part string }{
	{"admin: { existingSecret: other }", "Secret/runlens-admin", ""},
	{"redis: { existingSecret: '' }", serve, "RUNLENS_REDIS_URL"},
	{"serve: { autoscaling: { enabled: false } }", "HorizontalPodAutoscaler/runlens-serve", ""},
	{"serve: { autoscaling: { enabled: false }, replicas: 1 }", "PodDisruptionBudget/runlens-serve", ""},
	{"serve: { disruptionBudget: { enabled: false } }", "PodDisruptionBudget/runlens-serve", ""},
	{"serve: { topologySpread: false }", serve, "topologySpreadConstraints"},
	{"ingress: { enabled: false }", ingress, ""},
	{"ingress: { tlsSecret: '' }", ingress, "tls"},
	{"worker: { enabled: false }", worker, ""},
	{"networkPolicy: { enabled: false }", policy, ""},
	{"serviceMonitor: { enabled: false }", monitor, ""},
}

func TestEveryValueChangesAManifest(t *testing.T) {
	usual, err := render(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	tested := []string{"serve: { acceptLimitsPerReplica: true }"} // TestGuards
	for _, c := range changes {
		got, err := render(t, everything, c.values)
		if err != nil {
			t.Errorf("%s: %v", c.values, err)
		} else if strings.Contains(usual[c.manifest], c.has) || !strings.Contains(got[c.manifest], c.has) {
			t.Errorf("%s: %s lacks %s, or always has it\n%s", c.values, c.manifest, c.has, got[c.manifest])
		}
		tested = append(tested, c.values)
	}
	for _, c := range removals {
		got, err := render(t, everything, c.values)
		if err != nil {
			t.Errorf("%s: %v", c.values, err)
		}
		there := got[c.manifest] != "" && strings.Contains(got[c.manifest], c.part)
		if there || usual[c.manifest] == "" || !strings.Contains(usual[c.manifest], c.part) {
			t.Errorf("%s: %s still has %q, or never had\n%s", c.values, c.manifest, c.part, got[c.manifest])
		}
		tested = append(tested, c.values)
	}
	all, err := chartutil.ReadValuesFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := merged(t, tested...)
	for _, path := range leaves("", all) {
		if !has(set, strings.Split(path, ".")) {
			t.Errorf("no test sets %s", path)
		}
	}
}

// leaves are the paths of the values that are no tables, or empty ones.
func leaves(path string, values map[string]any) (all []string) {
	for name, value := range values {
		if table, ok := value.(map[string]any); ok && len(table) > 0 {
			all = append(all, leaves(path+name+".", table)...)
		} else {
			all = append(all, path+name)
		}
	}
	return all
}

func has(values map[string]any, path []string) bool {
	value, found := values[path[0]]
	if table, ok := value.(map[string]any); ok && len(path) > 1 {
		return has(table, path[1:])
	}
	return found && len(path) == 1
}

// The token that was made is one that servers accept, and the notes name what there is.
func TestSecretAndNotes(t *testing.T) {
	manifests, err := render(t, needed)
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`"token":"[A-Za-z0-9+/=]{56}"`)
	if secret := manifests["Secret/runlens-admin"]; !token.MatchString(secret) {
		t.Errorf("no token of 40 bytes: %s", secret)
	}
	for _, says := range []string{"deployment/runlens-serve", "service/runlens 8080:80", "clickhouse.internal",
		"No worker"} {
		if !strings.Contains(manifests["NOTES"], says) {
			t.Errorf("the notes don't say %q:\n%s", says, manifests["NOTES"])
		}
	}
}

// The page of the chart names every value.
func TestPageNamesEveryValue(t *testing.T) {
	page, err := os.ReadFile(chartDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ReadValuesFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves("", all) {
		for !strings.Contains(string(page), "`"+path+"`") {
			parent := path[:max(0, strings.LastIndex(path, "."))]
			if parent == "" {
				t.Errorf("the page does not name %s", path)
				break
			}
			path = parent
		}
	}
}
