// Package backup keeps what Hydra holds in a file, and puts it back: a database's
// snapshot, consistent as of one index of the log and with a checksum of its own, and its
// way through the API into a cluster that is empty.
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

// Sentinel errors.
var (
	// ErrExists says that the file is there.
	ErrExists = errors.New("the file is there already")
	// ErrNotEmpty says that a cluster holds rows.
	ErrNotEmpty = errors.New("the cluster is not empty")
	// ErrRefused says that a member did not give its snapshot.
	ErrRefused = errors.New("the member gave no snapshot")
)

// Summary is what a backup holds.
type Summary struct {
	Cluster string `json:"cluster"`
	// Log is the name of the log that led to it, "" for one of a version that gave no names.
	Log string `json:"log"`
	// Index is the point of the log that it is as of.
	Index  uint64   `json:"index"`
	Tables []string `json:"tables"`
	Rows   int64    `json:"rows"`
	Bytes  int64    `json:"bytes"`
	SHA256 string   `json:"sha256"`
}

// Source is a member to copy the database of.
type Source struct {
	Endpoint string // host:port
	TLS      func() *tls.Config
	Token    string // of scope admin
}

// Save writes a member's snapshot to a file that is not there yet.
func Save(ctx context.Context, from Source, path string) (s Summary, err error) {
	if _, err := os.Stat(path); err == nil {
		return s, advice.With(fmt.Errorf("%w: %s", ErrExists, path), "nothing was overwritten; name another one")
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-")
	if err != nil {
		return s, fmt.Errorf("making the backup: %w", err)
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
	// A link, unlike a rename, does not replace what came to be there meanwhile.
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
		return nil, fmt.Errorf("asking %s for a snapshot: %w", from.Endpoint, err)
	}
	if from.Token != "" {
		req.Header.Set("Authorization", "Bearer "+from.Token)
	}
	transport := &http.Transport{DialTLSContext: dialtls.Context(nil, from.TLS), DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s for a snapshot: %w", from.Endpoint, err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // the status alone says enough
		err := fmt.Errorf("%w: %s answered %s: %s", ErrRefused, from.Endpoint, resp.Status, strings.TrimSpace(string(text)))
		return nil, errors.Join(advice.With(err, "name a member that has a database, and a token of scope admin where tokens are asked for"), resp.Body.Close())
	}
	return resp.Body, nil
}

// readSnapshot reads a snapshot to its end, has its visitor told, and sums it up.
func readSnapshot(r io.Reader, v cloudsql.Visitor) (Summary, error) {
	var s Summary
	sum := sha256.New()
	counted := &counter{r: io.TeeReader(r, sum)}
	each := v.Row
	v.Begin = func(h cloudsql.Header) error {
		s.Cluster, s.Log, s.Index = h.Cluster, h.Log, h.Index
		for _, t := range h.Tables {
			if command.ValidTable(t) == nil { // and none that members keep for themselves
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

// Verify reads a backup to its end.
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
	// batchRows and batchBytes bound a transaction of a restore.
	batchRows  = 500
	batchBytes = 1 << 20
	// restorers are how many transactions are under way at once.
	restorers = 8
)

// Restore puts a backup's tables and rows into a cluster that holds no row. The file is
// checked to its end first. Rows get new versions, and idempotency keys of the time before
// are forgotten. When it fails half way, the cluster holds a part; clear its tables then.
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
			return s, fmt.Errorf("making the table %s: %w", t, err)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(restorers)
	var batch []api.Write
	size, n := 0, 0
	attempt := hydraclient.NewRequestID() // a restore after this one is another
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

// checkEmpty refuses a cluster that holds rows.
func checkEmpty(ctx context.Context, to *hydraclient.Client) error {
	tables, err := to.Tables(ctx)
	if err != nil {
		return fmt.Errorf("looking whether the cluster is empty: %w", err)
	}
	for _, t := range tables {
		rows, err := to.Count(ctx, t)
		if err != nil {
			return fmt.Errorf("looking whether the table %s is empty: %w", t, err)
		}
		if rows > 0 {
			return advice.With(fmt.Errorf("%w: %s has %d rows", ErrNotEmpty, t, rows), "restore into a new cluster, or clear its tables first")
		}
	}
	return nil
}
