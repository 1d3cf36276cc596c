package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/atomicfile"
	"skerry/internal/base/linger"
	"skerry/internal/run/executor/bucket"
)

const (
	// deliveries are how often an object is tried to be put, deliveryTime what all of them may take:
	// who ends a worker gives it little more.
	deliveries   = 5
	deliveryTime = 5 * time.Minute
)

// Deliver has send write to where results are waited for: a file, whole or not at all, or the object of a signed link. A
// ctx that has ended ends no delivery, since what was measured counts.
func Deliver(ctx context.Context, to string, send func(io.Writer) error) error {
	if !strings.Contains(to, "://") {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("delivering results: %w", err)
		}
		if err := atomicfile.File(to, send); err != nil {
			return fmt.Errorf("delivering results: %w", err)
		}
		return nil
	}
	var results bytes.Buffer
	err := send(&results)
	if err == nil {
		err = put(context.WithoutCancel(ctx), to, results.Bytes())
	}
	if err != nil {
		return fmt.Errorf("delivering results: %w", err)
	}
	return nil
}

// put puts an object by a link, again where that fails.
func put(ctx context.Context, link string, object []byte) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	var err error
	for try := range deliveries {
		if late := linger.For(ctx, time.Duration(try)*time.Second); late != nil {
			return errors.Join(err, late)
		}
		err = bucket.Request(ctx, http.DefaultClient, http.MethodPut, link, bytes.NewReader(object), func(io.Reader) error { return nil })
		if err == nil {
			return nil
		}
	}
	return err
}
