{{- define "runlens.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "runlens.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "runlens.labels" -}}
{{ include "runlens.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "runlens.adminSecret" -}}
{{ .Values.admin.existingSecret | default (printf "%s-admin" (include "runlens.name" .)) }}
{{- end }}

{{/* The port of a URL, or else a default: (list URL default). */}}
{{- define "runlens.port" -}}
{{- $host := (urlParse (index . 0)).host -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default (index . 1) -}}
{{- end }}

{{- define "runlens.clickhousePort" -}}
{{- $default := "9000" -}}
{{- if hasPrefix "https://" .Values.clickhouse.url }}{{ $default = "8443" }}{{ end -}}
{{- if hasPrefix "http://" .Values.clickhouse.url }}{{ $default = "8123" }}{{ end -}}
{{- include "runlens.port" (list .Values.clickhouse.url $default) -}}
{{- end }}

{{/* What servers and workers have in common: (dict "root" . "settings" .Values.serve). */}}
{{- define "runlens.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
volumes:
  - name: secrets
    projected:
      defaultMode: 0440
      sources:
        - secret:
            name: {{ .root.Values.clickhouse.existingSecret }}
            items: [{ key: {{ .root.Values.clickhouse.passwordKey | quote }}, path: clickhouse-password }]
        - secret:
            name: {{ include "runlens.adminSecret" .root }}
            items: [{ key: {{ .root.Values.admin.tokenKey | quote }}, path: admin-token }]
{{- with .settings.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .settings.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .settings.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}

{{/* And what their containers have in common. */}}
{{- define "runlens.container" -}}
image: {{ printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts: [{ name: secrets, mountPath: /run/secrets/runlens, readOnly: true }]
resources: {{ toJson .settings.resources }}
{{- end }}

{{- define "runlens.env" -}}
- { name: RUNLENS_CLICKHOUSE_URL, value: {{ .root.Values.clickhouse.url | quote }} }
- { name: RUNLENS_CLICKHOUSE_PASSWORD_FILE, value: /run/secrets/runlens/clickhouse-password }
- { name: RUNLENS_ADMIN_TOKEN_FILE, value: /run/secrets/runlens/admin-token }
{{- range $name, $value := .settings.env }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "runlens.probes" -}}
# Migrations may take five minutes, and the steps before and after them three.
startupProbe: { httpGet: { path: /healthz, port: admin }, periodSeconds: 5, failureThreshold: 120 }
livenessProbe: { httpGet: { path: /healthz, port: admin }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
{{- end }}
