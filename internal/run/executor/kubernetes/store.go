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
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/tail"
	"skerry/internal/run/executor/bucket"
)

// store holds results until they are collected. It outlives the pods and this process.
type store interface {
	// check returns why the store cannot be used, and warnings.
	check(ctx context.Context) (doubts, err error)
	// destination returns where the tasks of a Job write their results, and the claim that their pods mount.
	destination(job string) (where, claim string)
	// get writes the results of a task to w; errNoResult means that there are none.
	get(ctx context.Context, key string, w io.Writer) error
	remove(ctx context.Context, key string) error
	close() error
}

var errNoResult = errors.New("nothing was left")

func resultKey(job string, index int) string { return job + "-" + strconv.Itoa(index) }

func (e *Executor) openStore(results string) (store, error) {
	switch {
	case results == "" || results == "logs":
		return nil, nil
	case strings.HasPrefix(results, "claim:") && len(results) > len("claim:"):
		return &claimStore{e: e, name: strings.TrimPrefix(results, "claim:")}, nil
	case strings.HasPrefix(results, bucket.Scheme):
		b, err := bucket.Open(results)
		return &bucketStore{b}, err
	}
	return nil, advice.With(
		fmt.Errorf("invalid --results %q for kubernetes", results),
		"use one of: logs, claim:NAME, s3://BUCKET/PREFIX",
	)
}

// bucketStore is a bucket. Tasks write to signed links from the ConfigMap.
type bucketStore struct{ *bucket.Bucket }

func (s *bucketStore) check(ctx context.Context) (doubts, err error) { return nil, s.Check(ctx) }

func (s *bucketStore) destination(string) (where, claim string) {
	return "@/skerry/to-$(JOB_COMPLETION_INDEX)", ""
}

func (s *bucketStore) get(ctx context.Context, key string, w io.Writer) error {
	err := s.Get(ctx, key, w)
	if errors.Is(err, bucket.ErrNotFound) {
		return errNoResult
	}
	return err
}

func (s *bucketStore) remove(ctx context.Context, key string) error { return s.Remove(ctx, key) }
func (s *bucketStore) close() error                                 { return nil }

// claimStore is a PersistentVolumeClaim. It is only accessible inside the cluster, so a pod that mounts it
// reads it:
//
//	trial's pod ─ file ─► the claim ─ kubectl exec READER -- cat ─► this process
//
// The reader is created for the first results and deleted at the end. An orphaned reader ends within the
// hour.
type claimStore struct {
	e    *Executor
	name string

	mu     sync.Mutex // serialises reads
	reader string     // the pod's name, "" for none
}

var readerManifest = template.Must(template.New("reader").Funcs(template.FuncMap{"q": quoteYAML}).Parse(`apiVersion: v1
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

// readerTimeout bounds the start of a reader, including the pull of its image.
const readerTimeout = 90 * time.Second

func (s *claimStore) check(ctx context.Context) (doubts, err error) {
	for _, what := range []string{"pods", "pods/exec"} {
		if out, err := s.e.kubectl(ctx, nil, "auth", "can-i", "create", what); strings.TrimSpace(string(out)) == "no" {
			return nil, advice.With(fmt.Errorf("no permission to create %s, which reading a claim needs: %w", what, err),
				"request the permission, or collect results from logs: --results logs")
		}
	}
	out, err := s.e.kubectl(ctx, nil, "get", "persistentvolumeclaim", s.name, "--output", "json")
	if err != nil {
		return nil, advice.With(fmt.Errorf("read claim %s: %w", s.name, err),
			"create it with access mode ReadWriteMany: kubectl create -f CLAIM.yaml")
	}
	var claim struct {
		Spec struct {
			Modes []string `json:"accessModes"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(out, &claim); err != nil {
		return nil, fmt.Errorf("read claim %s: %w", s.name, err)
	}
	if !slices.Contains(claim.Spec.Modes, "ReadWriteMany") {
		doubts = fmt.Errorf("claim %s is not ReadWriteMany: its pods may have to share a node", s.name)
	}
	return doubts, nil
}

func (s *claimStore) destination(job string) (where, claim string) {
	return "/results/" + job + "-$(JOB_COMPLETION_INDEX)", s.name
}

func (s *claimStore) get(ctx context.Context, key string, w io.Writer) error {
	return s.exec(ctx, w, "cat", "/results/"+key)
}

func (s *claimStore) remove(ctx context.Context, key string) error {
	return s.exec(ctx, io.Discard, "rm", "-f", "/results/"+key)
}

func (s *claimStore) exec(ctx context.Context, out io.Writer, args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == "" {
		if err := s.startReader(ctx); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "kubectl", s.e.flags(append([]string{"exec", s.reader, "--"}, args...)...)...)
	stderr := tail.New(500)
	cmd.Stdout, cmd.Stderr = out, stderr
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if strings.Contains(stderr.String(), "No such file or directory") {
		return errNoResult
	}
	// The reader may have ended, or its node may be lost.
	return errors.Join(fmt.Errorf("read claim %s: %w: %s", s.name, err, strings.TrimSpace(stderr.String())), s.stopReader(ctx))
}

func (s *claimStore) startReader(ctx context.Context) error {
	name := "skerry-results-" + strings.ToLower(rand.Text()[:10])
	var manifest bytes.Buffer
	if err := readerManifest.Execute(&manifest, map[string]string{"Name": name, "Image": s.e.Image, "Claim": s.name}); err != nil {
		return fmt.Errorf("write manifest of the claim's reader: %w", err)
	}
	_, err := s.e.kubectl(ctx, &manifest, "create", "-f", "-")
	if err == nil {
		s.reader = name
		_, err = s.e.kubectl(ctx, nil, "wait", "pod", name, "--for=condition=Ready", fmt.Sprintf("--timeout=%s", readerTimeout))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("create a pod that reads claim %s: %w", s.name, err), s.stopReader(ctx))
	}
	return nil
}

func (s *claimStore) stopReader(ctx context.Context) error {
	if s.reader == "" {
		return nil
	}
	name := s.reader
	s.reader = ""
	if _, err := s.e.kubectl(ctx, nil, "delete", "pod", name, "--ignore-not-found", "--wait=false"); err != nil {
		return fmt.Errorf("delete the pod that reads the claim: %w", err)
	}
	return nil
}

func (s *claimStore) close() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	return s.stopReader(ctx)
}
