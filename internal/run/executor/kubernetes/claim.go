package kubernetes

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/tail"
)

// claimStore is a PersistentVolumeClaim. What is in it is seen inside the cluster alone, so it is read through
// a pod that does nothing but have it:
//
//	trial's pod ─ file ─► the claim ─ kubectl exec READER -- cat ─► this process
//
// The reader is made when the first results are read, and removed at the end; one that was left ends within the hour.
type claimStore struct {
	e    *Engine
	name string

	mu     sync.Mutex // of one reading at a time
	reader string     // the pod's name, "" for none
}

var reader = template.Must(template.New("reader").Funcs(template.FuncMap{"q": quote}).Parse(`apiVersion: v1
kind: Pod
metadata:
  name: {{.Name}}
  labels: {app: skerry-results}
spec:
  restartPolicy: Never
  activeDeadlineSeconds: 3600
  terminationGracePeriodSeconds: 0
  containers:
  - name: reader
    image: {{q .Image}}
    imagePullPolicy: IfNotPresent
    command: [sleep, "3600"]
    volumeMounts:
    - {name: results, mountPath: /results}
  volumes:
  - {name: results, persistentVolumeClaim: {claimName: {{q .Claim}}}}
`))

// readerTime is how long a reader may take to run: its image is there or is pulled.
const readerTime = 90 * time.Second

func (s *claimStore) check(ctx context.Context) (doubts, err error) {
	for _, what := range []string{"pods", "pods/exec"} {
		if out, err := s.e.kubectl(ctx, nil, "auth", "can-i", "create", what); strings.TrimSpace(string(out)) == "no" {
			return nil, advice.With(fmt.Errorf("the cluster does not let this user create %s, by which a claim is read: %w", what, err), "ask for the right, or have results come another way: --results logs")
		}
	}
	out, err := s.e.kubectl(ctx, nil, "get", "persistentvolumeclaim", s.name, "--output", "json")
	if err != nil {
		return nil, advice.With(fmt.Errorf("asking for the claim %s: %w", s.name, err), "make it first, with access mode ReadWriteMany: kubectl create -f CLAIM.yaml")
	}
	var claim struct {
		Spec struct {
			Modes []string `json:"accessModes"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(out, &claim); err != nil {
		return nil, fmt.Errorf("asking for the claim %s: %w", s.name, err)
	}
	if !slices.Contains(claim.Spec.Modes, "ReadWriteMany") {
		doubts = fmt.Errorf("the claim %s is not ReadWriteMany: all pods that use it may have to be on one node", s.name)
	}
	return doubts, nil
}

func (s *claimStore) to(job string) (where, claim string) {
	return "/results/" + job + "-$(JOB_COMPLETION_INDEX)", s.name
}

func (s *claimStore) get(ctx context.Context, key string, w io.Writer) error {
	return s.exec(ctx, w, "cat", "/results/"+key)
}

func (s *claimStore) remove(ctx context.Context, key string) error {
	return s.exec(ctx, io.Discard, "rm", "-f", "/results/"+key)
}

// exec runs a command in the reader.
func (s *claimStore) exec(ctx context.Context, out io.Writer, args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == "" {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "kubectl", s.e.flags(append([]string{"exec", s.reader, "--"}, args...)...)...)
	said := tail.New(500)
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if strings.Contains(said.String(), "No such file or directory") {
		return errNothing
	}
	// The reader may have ended, or its node be lost.
	return errors.Join(fmt.Errorf("reading the claim %s: %w: %s", s.name, err, strings.TrimSpace(said.String())), s.end(ctx))
}

// begin makes a reader and waits for it.
func (s *claimStore) begin(ctx context.Context) error {
	name := "skerry-results-" + strings.ToLower(rand.Text()[:10])
	var manifest bytes.Buffer
	if err := reader.Execute(&manifest, map[string]string{"Name": name, "Image": s.e.Image, "Claim": s.name}); err != nil {
		return fmt.Errorf("writing the manifest of the claim's reader: %w", err)
	}
	_, err := s.e.kubectl(ctx, &manifest, "create", "-f", "-")
	if err == nil {
		s.reader = name
		_, err = s.e.kubectl(ctx, nil, "wait", "pod", name, "--for=condition=Ready", fmt.Sprintf("--timeout=%s", readerTime))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("making a pod that reads the claim %s: %w", s.name, err), s.end(ctx))
	}
	return nil
}

// end removes the reader.
func (s *claimStore) end(ctx context.Context) error {
	if s.reader == "" {
		return nil
	}
	name := s.reader
	s.reader = ""
	if _, err := s.e.kubectl(ctx, nil, "delete", "pod", name, "--ignore-not-found", "--wait=false"); err != nil {
		return fmt.Errorf("removing the pod that reads the claim: %w", err)
	}
	return nil
}

func (s *claimStore) close() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	return s.end(ctx)
}
