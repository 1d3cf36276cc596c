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

// Results are lines among others, since what carries them may mix them with what people are told, as logs
// of containers do, and may be cut short:
//
//	@skerry begin 17-0-node4-123
//	@skerry data <base64>
//	@skerry end <sha-256 of the data>
const (
	markBegin = "@skerry begin "
	markData  = "@skerry data "
	markEnd   = "@skerry end "
	// perLine bytes are 4,096 characters of base64: logs cut lines at 16 KiB.
	bytesPerLine = 3072
)

// WriteResults writes what was measured in a copy of a plan: results, and attempts that failed.
func WriteResults(w io.Writer, dir string, trials []int) error {
	for _, id := range trials {
		found, err := attemptDirs(dir, id)
		if err != nil {
			return fmt.Errorf("sending the result of trial %d: %w", id, err)
		}
		for name, from := range found {
			if err := writeAttempt(w, name, from); err != nil {
				return fmt.Errorf("sending the result of trial %d: %w", id, err)
			}
		}
	}
	return nil
}

// attemptDirs are the directories of a trial that were made here, by the names of their attempts.
func attemptDirs(dir string, id int) (map[string]string, error) {
	found := map[string]string{}
	work, err := record.OpenWork(dir)
	if err != nil {
		return nil, err
	}
	t, err := work.Result(id)
	if err != nil {
		return nil, err
	}
	result := filepath.Join(dir, "trials", fmt.Sprint(id))
	if _, err := os.Stat(filepath.Join(result, "timeline.parquet")); t != nil && err == nil { // the copy of a result that stood has no tables
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

// maxOtherOutput bounds what is kept of other lines.
const maxOtherOutput = 2000

// ErrTruncated says that a stream ended within a result, or lost part of it.
var ErrTruncated = errors.New("a result was cut")

// ReadResults takes in the results of a stream that a worker has written, each whole or not at all, and returns the end
// of what else it said. ErrCut says that one of them was not whole.
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
			_, _ = io.WriteString(rest, line) // a Tail never fails
		}
		if errors.Is(err, io.EOF) {
			return rest.String(), errors.Join(append(errs, truncatedError(name))...)
		}
		if err != nil {
			return rest.String(), errors.Join(append(errs, fmt.Errorf("reading what a worker sends: %w", err))...)
		}
	}
}

// truncatedError is an error where the result of a name has begun and not ended.
func truncatedError(name string) error {
	if name == "" {
		return nil
	}
	return fmt.Errorf("%w: that of attempt %s", ErrTruncated, name)
}

const (
	// deliveries are how often an object is tried to be put, deliveryTime what all of them may take:
	// who ends a worker gives it little more.
	maxDeliveries   = 5
	deliveryTimeout = 5 * time.Minute
)

// DeliverResults has send write to where results are waited for: a file, whole or not at all, or the object of a signed link. A
// ctx that has ended ends no delivery, since what was measured counts.
func DeliverResults(ctx context.Context, to string, send func(io.Writer) error) error {
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
		err = putObject(context.WithoutCancel(ctx), to, results.Bytes())
	}
	if err != nil {
		return fmt.Errorf("delivering results: %w", err)
	}
	return nil
}

// putObject puts an object by a link, again where that fails.
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
