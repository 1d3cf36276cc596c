package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// Classes of connection errors, the same for all databases.
const (
	ClassRefused        = "refused"     // no process listens
	ClassUnreachable    = "unreachable" // no route
	ClassConnectTimeout = "connect_timeout"
	ClassTimeout        = "timeout" // sent, no answer in time
	ClassReset          = "reset"   // ended by the other side's system
	ClassEOF            = "eof"     // ended by the other side
	ClassCanceled       = "canceled"
	ClassOther          = "error"
)

// ErrorClass returns the class of an error on an open connection.
func ErrorClass(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return ClassCanceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &timeout) && timeout.Timeout():
		return ClassTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return ClassRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return ClassUnreachable
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ClassReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ClassEOF
	}
	return ClassOther
}

// DialErrorClass returns the class of a failed connection attempt, before anything was sent.
func DialErrorClass(err error) string {
	if c := ErrorClass(err); c != ClassTimeout {
		return c
	}
	return ClassConnectTimeout
}

const (
	// maxAnswer bounds a response body, in bytes.
	maxAnswer = 64 << 20
	// maxText bounds the text of an error, in bytes.
	maxText = 500
)

// DoRequest sends an HTTP request and returns the response body. Errors are those of the load
// driver: 404 is load.ErrNotFound, 501 is load.ErrUnsupported, and another 4xx means that nothing
// was done. After a 202, a 5xx or no response the outcome is unknown. Package http repeats a
// request only if nothing of it was sent, or if it is a GET.
func DoRequest(client *http.Client, req *http.Request, server string) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return nil, load.Failed(DialErrorClass(err), server, err)
		}
		return nil, load.Unknown(ErrorClass(err), server, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, load.Unknown(ErrorClass(err), server, err)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusAccepted:
		return nil, load.Unknown("http_202", server, errors.New("the server accepted the request and did not report its outcome"))
	case code == http.StatusNotFound:
		return nil, load.ErrNotFound
	case code == http.StatusNotImplemented:
		return nil, load.ErrUnsupported
	case code >= 500:
		return nil, load.Unknown("http_"+strconv.Itoa(code), server, errorText(answer))
	case code < 200 || code > 299:
		return nil, load.Failed("http_"+strconv.Itoa(code), server, errorText(answer))
	}
	return answer, nil
}

func errorText(answer []byte) error {
	return errors.New(strings.TrimSpace(string(answer[:min(len(answer), maxText)])))
}

// ErrDiskFull means that the disk of a node is full.
var ErrDiskFull = errors.New("the disk is full")

const (
	// fullShare is the fraction of a disk, at most fullBytes, that servers need free.
	fullShare = 8
	fullBytes = 256 << 20
	// explainTime bounds the queries for free space.
	explainTime = 5 * time.Second
)

// ExplainDiskFull adds to an error the nodes without free disk space; the result then wraps ErrDiskFull. It also
// works after the end of ctx. Other errors are returned unchanged.
func ExplainDiskFull(ctx context.Context, err error, nodes []host.Host) error {
	if err == nil || errors.Is(err, ErrDiskFull) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTime)
	defer cancel()
	disks := make(map[string]*disk)
	var order []*disk
	for _, n := range nodes {
		space, e := n.Files().Space(ctx, n.Dir())
		if e != nil {
			continue // its directory is gone: that explains nothing
		}
		d := disks[space.Disk]
		if d == nil {
			d = &disk{dir: n.Dir(), free: space.Free, size: space.Size}
			disks[space.Disk] = d
			order = append(order, d)
		}
		d.nodes = append(d.nodes, n.Name())
	}
	var full []error
	for _, d := range order {
		if d.full() {
			full = append(full, fmt.Errorf("%w: %v of %v are free for %s (%s)", ErrDiskFull, unit.Bytes(d.free), unit.Bytes(d.size),
				strings.Join(d.nodes, ", "), d.dir))
		}
	}
	if len(full) == 0 {
		return err
	}
	return advice.With(errors.Join(append([]error{err}, full...)...),
		"make room there, load fewer records, or keep labs elsewhere by SKERRY_DATA")
}

// disk is a disk with the directories of some nodes. Sizes are in bytes.
type disk struct {
	dir        string
	nodes      []string
	free, size int64
}

func (d *disk) full() bool { return d.free < min(d.size/fullShare, fullBytes) }
