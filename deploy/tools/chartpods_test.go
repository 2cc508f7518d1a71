package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// pod is the pod of a Deployment of 'everything'.
func pod(t *testing.T, of string) (apps.DeploymentSpec, core.PodSpec, core.Container) {
	t.Helper()
	manifests, err := render(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	var deployment apps.Deployment
	if err := yaml.UnmarshalStrict([]byte(manifests[of]), &deployment); err != nil {
		t.Fatal(err)
	}
	spec := deployment.Spec.Template.Spec
	if len(spec.Containers) != 1 {
		t.Fatalf("%s has %d containers", of, len(spec.Containers))
	}
	return deployment.Spec, spec, spec.Containers[0]
}

// Servers and workers run as the image's user, and may write nothing and do nothing else.
func TestPodsAreBounded(t *testing.T) {
	for _, of := range []string{serve, worker} {
		_, spec, container := pod(t, of)
		user, bounds := spec.SecurityContext, container.SecurityContext
		if !*user.RunAsNonRoot || *user.RunAsUser != 65532 ||
			user.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || *bounds.AllowPrivilegeEscalation ||
			!*bounds.ReadOnlyRootFilesystem ||
			!slices.Equal(bounds.Capabilities.Drop, []core.Capability{"ALL"}) || *spec.AutomountServiceAccountToken {
			t.Errorf("%s is not bounded: %v %v", of, user, bounds)
		}
	}
}

// A server gets no requests before it is ready, none are cut off when it ends, and a migration may take its time. The
// kubelet asks a port that the container has and that its command listens on.
func TestPodsStartAndEnd(t *testing.T) {
	deployment, spec, container := pod(t, serve)
	if update := deployment.Strategy.RollingUpdate; update.MaxUnavailable.IntValue() != 0 {
		t.Errorf("servers go before others are ready: %v", update)
	}
	// preStop, the drain, and closePatience of serve.
	before := container.Lifecycle.PreStop.Sleep.Seconds
	if drain := int64(20); before < 1 || *spec.TerminationGracePeriodSeconds <= before+drain+5 {
		t.Errorf("of %d s a server has %d before it drains", *spec.TerminationGracePeriodSeconds, before)
	}
	ready := container.ReadinessProbe
	if ready.HTTPGet.Path != "/readyz" {
		t.Errorf("ready is %s", ready.HTTPGet.Path)
	}
	// All servers ask one ClickHouse, and all would be away with it.
	if out := ready.PeriodSeconds * ready.FailureThreshold; out < 60 {
		t.Errorf("servers are away %d s after ClickHouse is", out)
	}
	for of, admin := range map[string]string{serve: "0.0.0.0:9090", worker: "0.0.0.0:9091"} {
		_, _, container := pod(t, of)
		start, live := container.StartupProbe, container.LivenessProbe
		if start.HTTPGet.Path != "/healthz" || live.HTTPGet.Path != "/healthz" || start.HTTPGet.Port.StrVal != "admin" ||
			live.HTTPGet.Port.StrVal != "admin" || start.PeriodSeconds*start.FailureThreshold < 8*60 {
			t.Errorf("%s is probed by %v, %v", of, start, live)
		}
		if "Deployment/runlens-"+container.Args[0] != of || len(container.Args) != 1 {
			t.Errorf("%s runs %v", of, container.Args)
		}
		listens := core.EnvVar{Name: "RUNLENS_ADMIN_LISTEN", Value: admin}
		port := container.Ports[len(container.Ports)-1]
		if !slices.Contains(container.Env, listens) || port.Name != "admin" ||
			admin != fmt.Sprintf("0.0.0.0:%d", port.ContainerPort) {
			t.Errorf("%s listens elsewhere than %v", of, port)
		}
	}
}

// The two passwords and the token are files and variables from Secrets, nowhere in a manifest.
func TestSecretsAreReferences(t *testing.T) {
	for of, variable := range map[string]string{serve: "RUNLENS_REDIS_URL", worker: "PGPASSWORD"} {
		_, spec, container := pod(t, of)
		if !slices.ContainsFunc(container.Env, func(v core.EnvVar) bool {
			return v.Name == variable && v.Value == "" && v.ValueFrom.SecretKeyRef != nil
		}) {
			t.Errorf("%s has no %s from a Secret", of, variable)
		}
		mounted := container.VolumeMounts[0]
		files := map[string]bool{}
		for _, source := range spec.Volumes[0].Projected.Sources {
			files[mounted.MountPath+"/"+source.Secret.Items[0].Path] = true
		}
		for _, named := range []string{"RUNLENS_CLICKHOUSE_PASSWORD_FILE", "RUNLENS_ADMIN_TOKEN_FILE"} {
			if !slices.ContainsFunc(container.Env, func(v core.EnvVar) bool {
				return v.Name == named && files[v.Value]
			}) {
				t.Errorf("%s names no mounted file in %s", of, named)
			}
		}
	}
}

// Names are resolved, by both protocols, also by pods that listen on the port of OpenShift's.
func TestNamesAreResolved(t *testing.T) {
	manifests, err := render(t, needed)
	if err != nil {
		t.Fatal(err)
	}
	const names = `{"ports":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"},` +
		`{"port":5353,"protocol":"UDP"},{"port":5353,"protocol":"TCP"}]}`
	if !strings.Contains(manifests[policy], names) {
		t.Errorf("%s allows no names: %s", policy, manifests[policy])
	}
}
