package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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
	"skerry/internal/base/tail"
	"skerry/internal/record"
	"skerry/internal/run/executor/bucket"
)

// Results are lines in a worker's output, because logs of containers mix them with other lines and may be
// truncated:
//
//	@skerry begin 17-0-node4-123
//	@skerry data <base64>
//	@skerry end <sha-256 of the data>
const (
	markBegin = "@skerry begin "
	markData  = "@skerry data "
	markEnd   = "@skerry end "
	// bytesPerLine makes 4,096 characters of base64; logs split lines at 16 KiB.
	bytesPerLine = 3072
)

// WriteResults writes the results of trials that were measured in a copy of a plan, and their failed
// attempts.
func WriteResults(w io.Writer, dir string, trials []int) error {
	for _, id := range trials {
		found, err := attemptDirs(dir, id)
		if err != nil {
			return fmt.Errorf("send result of trial %d: %w", id, err)
		}
		for name, from := range found {
			if err := writeAttempt(w, name, from); err != nil {
				return fmt.Errorf("send result of trial %d: %w", id, err)
			}
		}
	}
	return nil
}

func attemptDirs(dir string, id int) (map[string]string, error) {
	found := map[string]string{}
	work, err := record.OpenWorker(dir)
	if err != nil {
		return nil, err
	}
	t, err := work.Result(id)
	if err != nil {
		return nil, err
	}
	result := filepath.Join(dir, "trials", fmt.Sprint(id))
	if _, err := os.Stat(filepath.Join(result, "timeline.parquet")); t != nil && err == nil { // a packed result has no tables
		found[t.Attempt] = result
	}
	names, err := filepath.Glob(filepath.Join(dir, "attempts", fmt.Sprintf("%d-*", id)))
	for _, name := range names {
		if !strings.HasSuffix(name, ".partial") {
			found[filepath.Base(name)] = name
		}
	}
	return found, err
}

func writeAttempt(w io.Writer, name, from string) error {
	var packed bytes.Buffer
	if err := packDir(&packed, from); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	sum := sha256.Sum256(packed.Bytes())
	fmt.Fprintln(out, markBegin+name)
	for packed.Len() > 0 {
		fmt.Fprintln(out, markData+base64.StdEncoding.EncodeToString(packed.Next(bytesPerLine)))
	}
	fmt.Fprintln(out, markEnd+hex.EncodeToString(sum[:]))
	return out.Flush()
}

// maxOtherOutput bounds the other output that ReadResults keeps, in bytes.
const maxOtherOutput = 2000

// ErrTruncated means that a stream lost part of a result.
var ErrTruncated = errors.New("truncated result")

// ReadResults stores the complete results of a worker's output, and returns the end of the other lines. The
// error wraps ErrTruncated if a result was incomplete.
func ReadResults(r io.Reader, into *record.Writer) (string, error) {
	rest := tail.New(maxOtherOutput)
	var name string
	var packed bytes.Buffer
	var errs []error
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		text := strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(text, markBegin):
			errs = append(errs, truncatedError(name))
			name = strings.TrimPrefix(text, markBegin)
			packed.Reset()
		case strings.HasPrefix(text, markData) && name != "":
			data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, markData))
			if err != nil {
				errs = append(errs, truncatedError(name))
				name = ""
			}
			packed.Write(data)
		case strings.HasPrefix(text, markEnd) && name != "":
			sum := sha256.Sum256(packed.Bytes())
			if hex.EncodeToString(sum[:]) == strings.TrimPrefix(text, markEnd) {
				errs = append(errs, into.Receive(name, func(dir string) error { return Unpack(bytes.NewReader(packed.Bytes()), dir) }))
			} else {
				errs = append(errs, truncatedError(name))
			}
			name = ""
		case text != "":
			_, _ = io.WriteString(rest, line) // cannot fail
		}
		if errors.Is(err, io.EOF) {
			return rest.String(), errors.Join(append(errs, truncatedError(name))...)
		}
		if err != nil {
			return rest.String(), errors.Join(append(errs, fmt.Errorf("read output of worker: %w", err))...)
		}
	}
}

func truncatedError(name string) error {
	if name == "" {
		return nil
	}
	return fmt.Errorf("%w of attempt %s", ErrTruncated, name)
}

const (
	maxDeliveries = 5
	// deliveryTimeout bounds all attempts; executors kill a finished worker soon after.
	deliveryTimeout = 5 * time.Minute
)

// DeliverResults calls send to write results to a file, atomically, or to a signed link. It ignores the end
// of ctx, because results must not be lost.
func DeliverResults(ctx context.Context, to string, send func(io.Writer) error) error {
	if !strings.Contains(to, "://") {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("deliver results: %w", err)
		}
		if err := atomicfile.Write(to, send); err != nil {
			return fmt.Errorf("deliver results: %w", err)
		}
		return nil
	}
	var results bytes.Buffer
	err := send(&results)
	if err == nil {
		err = putObject(context.WithoutCancel(ctx), to, results.Bytes())
	}
	if err != nil {
		return fmt.Errorf("deliver results: %w", err)
	}
	return nil
}

func putObject(ctx context.Context, link string, object []byte) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	var err error
	for try := range maxDeliveries {
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
