package kubernetes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/template"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor"
)

// jobManifest is the template of a Job. The cluster does not retry failed indexes, because package dispatch
// does. An index whose pod is on a dead node counts as failed. If pods must not be privileged, use
// capabilities SYS_ADMIN, NET_ADMIN, NET_RAW, SYS_PTRACE, SYS_NICE, SETUID, SETGID and KILL, with seccomp
// Unconfined.
var jobManifest = template.Must(template.New("job").Funcs(template.FuncMap{"q": quoteYAML}).Parse(`apiVersion: batch/v1
kind: Job
metadata:
  name: {{.Name}}
  labels: {app: skerry, run: {{q .Run}}}
spec:
  completionMode: Indexed
  completions: {{len .Tasks}}
  parallelism: {{len .Tasks}}
  backoffLimitPerIndex: 0
  maxFailedIndexes: {{len .Tasks}}
  podReplacementPolicy: TerminatingOrFailed
  ttlSecondsAfterFinished: 86400
  template:
    metadata:
      labels: {app: skerry, run: {{q .Run}}}
    spec:
      restartPolicy: Never
{{- if .Seconds}}
      activeDeadlineSeconds: {{.Seconds}}{{end}}
      tolerations: # a node that does not answer is given up soon
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
      affinity: # a node for each, since verdicts want quiet
{{- if .Avoid}}
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchFields:{{range .Avoid}}
              - {key: metadata.name, operator: NotIn, values: [{{q .}}]}{{end}}{{end}}
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {labelSelector: {matchLabels: {app: skerry}}, topologyKey: kubernetes.io/hostname}
      containers:
      - name: trial
        image: {{q .Image}}
        imagePullPolicy: IfNotPresent
        args: [skerry, agent, task, --plan, /skerry/plan, --only, "@/skerry/task-$(JOB_COMPLETION_INDEX)"{{if .To}}, --to, {{q .To}}{{end}}{{if .Again}}, --suspect{{end}}]
        command: [/usr/bin/env]
        env:
        - {name: {{.Machine}}, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: {{.Variable}}, value: "kubernetes {{.Name}} on $({{.Machine}})"}
        - {name: HOME, value: /tmp}
        securityContext: {privileged: true}
{{- if .Memory}}
        resources: {requests: {memory: {{.Memory}}Mi}}{{end}}
        volumeMounts:
        - {name: plan, mountPath: /skerry}
        - {name: scratch, mountPath: /var/tmp}
{{- if .Claim}}
        - {name: results, mountPath: /results}{{end}}
      volumes:
      - {name: plan, configMap: {name: {{.Name}}}}
      - {name: scratch, emptyDir: {}}
{{- if .Claim}}
      - {name: results, persistentVolumeClaim: {claimName: {{q .Claim}}}}{{end}}
`))

func writeJob(w io.Writer, e *Executor, b executor.Batch) error {
	var to, claim string
	if e.store != nil {
		to, claim = e.store.destination(b.Name())
	}
	err := jobManifest.Execute(w, map[string]any{
		"Name": b.Name(), "Run": labelValue(b.Run), "Tasks": b.Tasks, "Seconds": int(b.TimeLimit().Seconds()), "Image": e.Image, "Again": b.Rerun,
		"Machine": executor.MachineVariable, "Variable": executor.TaskVariable, "Memory": int64(math.Ceil(float64(b.MemoryBytes) / (1 << 20))),
		"To": to, "Claim": claim, "Avoid": b.Exclude,
	})
	if err != nil {
		return fmt.Errorf("write Job manifest: %w", err)
	}
	return nil
}

// maxConfigMap is the size limit of a ConfigMap, in bytes.
const maxConfigMap = 1 << 20

// writeConfig writes the ConfigMap with the plan; owner is the Job's UID, "" for none.
func (e *Executor) writeConfig(ctx context.Context, w io.Writer, b executor.Batch, owner string, plan []byte) error {
	meta := map[string]any{"name": b.Name(), "labels": map[string]string{"app": "skerry", "run": labelValue(b.Run)}}
	if owner != "" {
		meta["ownerReferences"] = ownerReferences(b.Name(), owner)
	}
	tasks := map[string]string{}
	for i, t := range b.Tasks {
		tasks["task-"+strconv.Itoa(i)] = executor.FormatTrials(t.Trials)
		if bucket, is := e.store.(*bucketStore); is {
			link, err := bucket.Link(ctx, resultKey(b.Name(), i))
			if err != nil {
				return err
			}
			tasks["to-"+strconv.Itoa(i)] = link
		}
	}
	text, err := json.MarshalIndent(map[string]any{ // JSON is YAML
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": tasks,
		"binaryData": map[string]string{"plan": base64.StdEncoding.EncodeToString(plan)},
	}, "", "  ")
	if err == nil && len(text) > maxConfigMap {
		return advice.With(fmt.Errorf("the plan and the files of the experiment have %d KiB; a ConfigMap holds %d KiB",
			len(text)>>10, maxConfigMap>>10), "split the experiment")
	}
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap manifest: %w", err)
	}
	return nil
}

func ownerReferences(job, uid string) []any {
	return []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid}}
}

func labelValue(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(text[:min(len(text), 60)], "-.")
}

func quoteYAML(text string) string {
	q, err := json.Marshal(text)
	if err != nil { // unreachable: strings can be encoded
		return `""`
	}
	return string(q)
}
