package bundle

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/base/tail"
	"skerry/internal/record"
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
	perLine = 3072
)

// Send writes what was measured in a copy of a plan: results, and attempts that failed.
func Send(w io.Writer, dir string, trials []int) error {
	for _, id := range trials {
		found, err := measured(dir, id)
		if err != nil {
			return fmt.Errorf("sending the result of trial %d: %w", id, err)
		}
		for name, from := range found {
			if err := send(w, name, from); err != nil {
				return fmt.Errorf("sending the result of trial %d: %w", id, err)
			}
		}
	}
	return nil
}

// measured are the directories of a trial that were made here, by the names of their attempts.
func measured(dir string, id int) (map[string]string, error) {
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

func send(w io.Writer, name, from string) error {
	var packed bytes.Buffer
	if err := packDir(&packed, from); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	sum := sha256.Sum256(packed.Bytes())
	fmt.Fprintln(out, markBegin+name)
	for packed.Len() > 0 {
		fmt.Fprintln(out, markData+base64.StdEncoding.EncodeToString(packed.Next(perLine)))
	}
	fmt.Fprintln(out, markEnd+hex.EncodeToString(sum[:]))
	return out.Flush()
}

// said bounds what is kept of other lines.
const said = 2000

// ErrCut says that a stream ended within a result, or lost part of it.
var ErrCut = errors.New("a result was cut")

// Receive takes in the results of a stream that a worker has written, each whole or not at all, and returns the end
// of what else it said. ErrCut says that one of them was not whole.
func Receive(r io.Reader, into *record.Writer) (string, error) {
	rest := tail.New(said)
	var name string
	var packed bytes.Buffer
	var errs []error
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		text := strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(text, markBegin):
			errs = append(errs, cut(name))
			name = strings.TrimPrefix(text, markBegin)
			packed.Reset()
		case strings.HasPrefix(text, markData) && name != "":
			data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, markData))
			if err != nil {
				errs = append(errs, cut(name))
				name = ""
			}
			packed.Write(data)
		case strings.HasPrefix(text, markEnd) && name != "":
			sum := sha256.Sum256(packed.Bytes())
			if hex.EncodeToString(sum[:]) == strings.TrimPrefix(text, markEnd) {
				errs = append(errs, into.Receive(name, func(dir string) error { return Unpack(bytes.NewReader(packed.Bytes()), dir) }))
			} else {
				errs = append(errs, cut(name))
			}
			name = ""
		case text != "":
			_, _ = io.WriteString(rest, line) // a Tail never fails
		}
		if errors.Is(err, io.EOF) {
			return rest.String(), errors.Join(append(errs, cut(name))...)
		}
		if err != nil {
			return rest.String(), errors.Join(append(errs, fmt.Errorf("reading what a worker sends: %w", err))...)
		}
	}
}

// cut is an error where the result of a name has begun and not ended.
func cut(name string) error {
	if name == "" {
		return nil
	}
	return fmt.Errorf("%w: that of attempt %s", ErrCut, name)
}
