// Package tools_test tests the chart with Helm's own library, and manifests with the types of Kubernetes. It is a
// module of its own: these two, and the release tool, would put a thousand modules beside those of the product.
package tools_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policies "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const chartDir = "../helm/runlens"

// needed are values without which the chart is refused.
const needed = "clickhouse: { url: 'clickhouse://runlens@clickhouse.internal/runlens', existingSecret: clickhouse }\n"

// everything turns on what can be turned on.
const everything = needed + `
redis: { existingSecret: redis }
serve: { trustedProxies: 10.0.0.0/8, autoscaling: { enabled: true } }
ingress: { enabled: true, host: api.example.com, tlsSecret: tls, className: nginx }
worker: { enabled: true, source: 'postgres://reader@db/production', existingSecret: postgres }
serviceMonitor: { enabled: true }
`

// merged are values in YAML, the later ones over the earlier ones.
func merged(t *testing.T, texts ...string) chartutil.Values {
	t.Helper()
	all := chartutil.Values{}
	for _, text := range texts {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = chartutil.CoalesceTables(values, all)
	}
	return all
}

// render is what helm template prints, by kind and name, each in JSON with sorted keys.
func render(t *testing.T, texts ...string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "runlens", Namespace: "analytics", IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, merged(t, texts...), release, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	manifests := map[string]string{"NOTES": files["runlens/templates/NOTES.txt"]}
	delete(files, "runlens/templates/NOTES.txt")
	for name, text := range files {
		for document := range strings.SplitSeq(text, "\n---\n") {
			object := struct {
				Kind     string
				Metadata struct{ Name string }
			}{}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			content, err := yaml.YAMLToJSONStrict([]byte(document))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if object.Kind == "" {
				if string(content) != "null" {
					return nil, fmt.Errorf("%s has a document without a kind: %s", name, content)
				}
				continue
			}
			manifests[object.Kind+"/"+object.Metadata.Name] = string(content)
		}
	}
	return manifests, nil
}

// Helm has nothing to say against the chart.
func TestLint(t *testing.T) {
	for _, values := range []string{needed, everything} {
		for _, message := range lint.All(chartDir, merged(t, values), "analytics", true).Messages {
			if message.Severity > support.InfoSev {
				t.Error(message)
			}
		}
	}
}

// kinds are the types of Kubernetes and of Prometheus' operator that manifests are read into.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return new(apps.Deployment) },
	"v1 Service":                              func() any { return new(core.Service) },
	"v1 Secret":                               func() any { return new(core.Secret) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return new(autoscaling.HorizontalPodAutoscaler) },
	"networking.k8s.io/v1 Ingress":            func() any { return new(networking.Ingress) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policies.PodDisruptionBudget) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoring.ServiceMonitor) },
}

// valid reads a manifest strictly into its type: unknown fields, fields given twice and wrong types are errors.
func valid(document string) error {
	var of struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(document), &of); err != nil {
		return err
	}
	kind := kinds[of.APIVersion+" "+of.Kind]
	if kind == nil {
		return fmt.Errorf("no type is known for %q", of)
	}
	strict, err := json.UnmarshalStrict([]byte(document), kind())
	return errors.Join(append(strict, err)...)
}

// Every manifest has only fields that its kind has, with values of their types.
func TestManifestsAreValid(t *testing.T) {
	for _, values := range []string{needed, everything} {
		manifests, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		for of, document := range manifests {
			if of == "NOTES" {
				continue
			}
			if err := valid(document); err != nil {
				t.Errorf("%s: %v\n%s", of, err, document)
			}
		}
		// Wrong ones are found.
		deployment := manifests["Deployment/runlens-serve"]
		for before, after := range map[string]string{`"readOnly":true`: `"readonly":true`, `"maxSurge":1`: `"maxSurge":[]`} {
			broken := strings.Replace(deployment, before, after, 1)
			if err := valid(broken); err == nil || broken == deployment {
				t.Errorf("%s is accepted", after)
			}
		}
	}
}

// What is installed by default, and with everything. No hooks and no Jobs: serve migrates.
func TestManifests(t *testing.T) {
	for values, want := range map[string][]string{
		needed: {"Deployment/runlens-serve", "NOTES", "NetworkPolicy/runlens", "Secret/runlens-admin", "Service/runlens",
			"Service/runlens-admin"},
		everything: {"Deployment/runlens-serve", "Deployment/runlens-worker", "HorizontalPodAutoscaler/runlens-serve",
			"Ingress/runlens", "NOTES", "NetworkPolicy/runlens", "PodDisruptionBudget/runlens-serve", "Secret/runlens-admin",
			"Service/runlens", "Service/runlens-admin", "ServiceMonitor/runlens"},
	} {
		manifests, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(manifests)); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		for name, document := range manifests {
			if strings.Contains(document, "helm.sh/hook") {
				t.Errorf("%s is a hook", name)
			}
		}
	}
}

// Every guard refuses with a sentence that says what to do; so does the schema.
func TestGuards(t *testing.T) {
	for values, says := range map[string]string{
		"clickhouse: { existingSecret: clickhouse }":                       "clickhouse.url is missing",
		"clickhouse: { url: 'clickhouse://runlens@c/runlens' }":            "clickhouse.existingSecret is missing",
		needed + "clickhouse: { url: 'http://u:secret@c/r' }":              "",
		needed + "worker: { source: 'postgres://u@db/p?password=secret' }": "worker.source has a password",
		needed + "serve: { replicas: 2 }":                                  "Several servers behind one Service",
		needed + "serve: { autoscaling: { enabled: true } }":               "Several servers behind one Service",
		needed + "serve: { acceptLimitsPerReplica: true, autoscaling: { enabled: true, minReplicas: 9 } }": "" +
			"minReplicas is greater than maxReplicas",
		needed + "ingress: { enabled: true }\nserve: { trustedProxies: 10.0.0.0/8 }": "ingress.host is missing",
		needed + "ingress: { enabled: true, host: a.example }":                       "serve.trustedProxies is missing",
		needed + "worker: { enabled: true, existingSecret: postgres }":               "worker.source and worker.existing",
		needed + "worker: { enabled: true, source: 'postgres://u@db/p' }":            "worker.source and worker.existing",
		// The schema.
		needed + "serve: { replica: 2 }":                               "additional properties 'replica' not allowed",
		needed + "serve: { env: { RUNLENS_MAX_BODY_BYTES: 1048576 } }": "string",
		needed + "ingress: { controller: traefik }":                    "controller",
	} {
		if says == "" { // the key is there twice
			values, says = strings.Replace(needed, "runlens@", "runlens:secret@", 1), "clickhouse.url has a password"
		}
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\ngot %v, want %q", values, err, says)
		}
	}
	for _, values := range []string{
		needed + "serve: { replicas: 2, acceptLimitsPerReplica: true }",
		needed + "serve: { replicas: 2 }\nredis: { existingSecret: redis }",
		needed + "serve: { replicas: 2, trustedProxies: 10.0.0.0/8 }\ningress: { enabled: true, host: a.example }",
	} {
		if _, err := render(t, values); err != nil {
			t.Errorf("%s\n%v", values, errors.Unwrap(err))
		}
	}
}
