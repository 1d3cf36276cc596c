package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/run/executor/bucket"
)

// store is where results wait until they are taken in, whatever becomes of the pods and of this process.
type store interface {
	// check tells why results cannot wait there, and what is doubtful.
	check(ctx context.Context) (doubts, err error)
	// to is what a task of a Job is told of where its results go, and the claim that its pod needs for that.
	to(job string) (where, claim string)
	// get writes what a task has left to w; errNothing says that it has left nothing.
	get(ctx context.Context, key string, w io.Writer) error
	remove(ctx context.Context, key string) error
	close() error
}

var errNothing = errors.New("nothing was left")

// key is what the results of a task are called in a store.
func key(job string, index int) string { return job + "-" + strconv.Itoa(index) }

// storeOf is the store of --results.
func (e *Engine) storeOf(results string) (store, error) {
	switch {
	case results == "" || results == "logs":
		return nil, nil
	case strings.HasPrefix(results, "claim:") && len(results) > len("claim:"):
		return &claimStore{e: e, name: strings.TrimPrefix(results, "claim:")}, nil
	case strings.HasPrefix(results, bucket.Scheme):
		b, err := bucket.Open(results)
		return &bucketStore{b}, err
	}
	return nil, advice.With(fmt.Errorf("results do not come from Kubernetes by %q", results), "there are: logs, claim:NAME, s3://BUCKET/PREFIX")
}

// bucketStore is a bucket: a task puts its results there by a link, which stands in the ConfigMap.
type bucketStore struct{ *bucket.Bucket }

func (s *bucketStore) check(ctx context.Context) (doubts, err error) { return nil, s.Check(ctx) }

func (s *bucketStore) to(string) (where, claim string) {
	return "@/skerry/to-$(JOB_COMPLETION_INDEX)", ""
}

func (s *bucketStore) get(ctx context.Context, key string, w io.Writer) error {
	err := s.Get(ctx, key, w)
	if errors.Is(err, bucket.ErrNone) {
		return errNothing
	}
	return err
}

func (s *bucketStore) remove(ctx context.Context, key string) error { return s.Remove(ctx, key) }
func (s *bucketStore) close() error                                 { return nil }
