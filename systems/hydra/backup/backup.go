// Package backup saves a member's snapshot to a file, and restores a file into an empty cluster
// through the API. A snapshot is consistent as of one log index and has a checksum.
//
//	member ─► /v1/snapshot ─► FILE       written whole and checked, or not there
//	FILE ─► checked ─► transactions ─► cluster, which must hold no rows
package backup

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/base/dialtls"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

var (
	ErrExists   = errors.New("file exists")
	ErrNotEmpty = errors.New("cluster is not empty")
	ErrRefused  = errors.New("member sent no snapshot")
)

// Summary describes a backup.
type Summary struct {
	Cluster string `json:"cluster"`
	// Log is the name of the log.
	Log string `json:"log"`
	// Index is the log index of the state.
	Index  uint64   `json:"index"`
	Tables []string `json:"tables"`
	Rows   int64    `json:"rows"`
	Bytes  int64    `json:"bytes"`
	SHA256 string   `json:"sha256"`
}

// Source is the member that provides the snapshot.
type Source struct {
	Endpoint string // host:port
	TLS      func() *tls.Config
	Token    string // of scope admin
}

// Save writes a member's snapshot to a new file.
func Save(ctx context.Context, from Source, path string) (s Summary, err error) {
	if _, err := os.Stat(path); err == nil {
		return s, advice.With(fmt.Errorf("%w: %s", ErrExists, path), "choose another file name")
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-")
	if err != nil {
		return s, fmt.Errorf("creating the backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	body, err := from.open(ctx)
	if err != nil {
		return s, err
	}
	s, err = readSnapshot(io.TeeReader(body, f), cloudsql.Visitor{})
	if err = errors.Join(err, body.Close()); err != nil {
		return s, fmt.Errorf("copying the database of %s: %w", from.Endpoint, err)
	}
	if err = f.Sync(); err != nil {
		return s, fmt.Errorf("writing the backup: %w", err)
	}
	// Unlike a rename, a link does not replace a file created meanwhile.
	if err = os.Link(f.Name(), path); err != nil {
		return s, fmt.Errorf("naming the backup: %w", err)
	}
	return s, errors.Join(f.Close(), os.Remove(f.Name()))
}

func (from Source) open(ctx context.Context) (io.ReadCloser, error) {
	scheme := "http"
	if from.TLS != nil {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+from.Endpoint+"/v1/snapshot", nil)
	if err != nil {
		return nil, fmt.Errorf("requesting a snapshot from %s: %w", from.Endpoint, err)
	}
	if from.Token != "" {
		req.Header.Set("Authorization", "Bearer "+from.Token)
	}
	transport := &http.Transport{DialTLSContext: dialtls.DialContext(nil, from.TLS), DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("requesting a snapshot from %s: %w", from.Endpoint, err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // the status suffices
		err := fmt.Errorf("%w: %s answered %s: %s", ErrRefused, from.Endpoint, resp.Status, strings.TrimSpace(string(text)))
		return nil, errors.Join(advice.With(err, "use a member with a database, and a token of scope admin"), resp.Body.Close())
	}
	return resp.Body, nil
}

func readSnapshot(r io.Reader, v cloudsql.Visitor) (Summary, error) {
	var s Summary
	sum := sha256.New()
	counted := &counter{r: io.TeeReader(r, sum)}
	each := v.Row
	v.Begin = func(h cloudsql.Header) error {
		s.Cluster, s.Log, s.Index = h.Cluster, h.Log, h.Index
		for _, t := range h.Tables {
			if command.ValidTable(t) == nil { // skip Hydra's own tables
				s.Tables = append(s.Tables, t)
			}
		}
		return nil
	}
	v.Row = func(table string, r cloudsql.Row) error {
		if command.ValidTable(table) != nil {
			return nil
		}
		s.Rows++
		if each != nil {
			return each(table, r)
		}
		return nil
	}
	if _, err := cloudsql.ReadSnapshot(counted, v); err != nil {
		return s, err
	}
	s.Bytes, s.SHA256 = counted.n, hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Verify reads and checks a backup.
func Verify(path string) (Summary, error) { return visitFile(path, cloudsql.Visitor{}) }

func visitFile(path string, v cloudsql.Visitor) (Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Summary{}, fmt.Errorf("reading the backup: %w", err)
	}
	s, err := readSnapshot(f, v)
	if err = errors.Join(err, f.Close()); err != nil {
		return s, fmt.Errorf("reading the backup %s: %w", path, err)
	}
	return s, nil
}

const (
	batchRows  = 500
	batchBytes = 1 << 20
	restorers  = 8
)

// Restore writes a verified backup into a cluster without rows. Rows get new versions, and earlier
// idempotency keys are lost. After an error the cluster holds a part of the backup; clear its tables.
func Restore(ctx context.Context, to *hydraclient.Client, path string) (Summary, error) {
	s, err := Verify(path)
	if err != nil {
		return s, err
	}
	if err := checkEmpty(ctx, to); err != nil {
		return s, err
	}
	for _, t := range s.Tables {
		if err := to.CreateTable(ctx, t); err != nil {
			return s, fmt.Errorf("creating table %s: %w", t, err)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(restorers)
	var batch []api.Write
	size, n := 0, 0
	attempt := hydraclient.NewRequestID() // each restore has its own keys
	send := func() {
		if len(batch) == 0 {
			return
		}
		t := api.Transaction{RequestID: fmt.Sprintf("restore/%s/%d", attempt, n), Writes: batch}
		batch, size, n = nil, 0, n+1
		g.Go(func() error {
			if _, err := to.Transact(ctx, t); err != nil {
				return fmt.Errorf("writing rows of %s: %w", t.Writes[0].Table, err)
			}
			return nil
		})
	}
	_, err = visitFile(path, cloudsql.Visitor{Row: func(table string, r cloudsql.Row) error {
		batch = append(batch, api.Write{Do: command.Put, Table: table, Key: r.Key, Value: json.RawMessage(r.Value)})
		if size += len(r.Key) + len(r.Value); len(batch) == batchRows || size >= batchBytes {
			send()
		}
		return ctx.Err()
	}})
	if err == nil {
		send()
	}
	return s, errors.Join(g.Wait(), err)
}

func checkEmpty(ctx context.Context, to *hydraclient.Client) error {
	tables, err := to.Tables(ctx)
	if err != nil {
		return fmt.Errorf("listing the cluster's tables: %w", err)
	}
	for _, t := range tables {
		rows, err := to.Count(ctx, t)
		if err != nil {
			return fmt.Errorf("counting the rows of %s: %w", t, err)
		}
		if rows > 0 {
			return advice.With(fmt.Errorf("%w: %s has %d rows", ErrNotEmpty, t, rows), "restore into a new cluster, or clear its tables first")
		}
	}
	return nil
}
