package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/bearer"
	"skerry/systems/hydra"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

const admin = "0123456789abcdef0123456789abcdef"

// patience is the timeout for five rows of the maximum size on a busy machine.
const patience = 4 * time.Minute

// serve starts the API in front of a database, with a token for all scopes.
func serve(t *testing.T, name string) (endpoint string, c *hydraclient.Client) {
	t.Helper()
	s, err := cloudsql.Open(t.Context(), cloudsql.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "hydra.db"), Cluster: name,
		Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := bearer.Parse([]byte("admin " + admin))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Config{Backend: &hydra.Direct{Cluster: name, Name: name, Cloud: name, Store: s},
		Member: name, Tokens: tokens, Patience: patience}))
	endpoint = server.Listener.Addr().String()
	if c, err = hydraclient.New(hydraclient.Config{Endpoints: []string{endpoint}, Token: admin, Timeout: patience}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		server.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return endpoint, c
}

func TestBackupRoundTrip(t *testing.T) {
	ctx := t.Context()
	at, from := serve(t, "old")
	const rows = 2*batchRows + 7
	// A row of the maximum size whose characters package json escapes with six bytes.
	largest := json.RawMessage(`{"v":"` + strings.Repeat("<&>", (command.MaxValue-8)/3) + `"}`)
	for _, table := range []string{"a", "b"} {
		if err := from.CreateTable(ctx, table); err != nil {
			t.Fatal(err)
		}
	}
	var all api.Transaction
	for i := range rows {
		value := json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"ä'\"; DROP TABLE a;--"}`, i))
		all.Writes = append(all.Writes, api.Write{Do: command.Put, Table: "a", Key: fmt.Sprintf("k%04d", i), Value: value})
	}
	if _, err := from.Transact(ctx, all); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := from.Put(ctx, "b", fmt.Sprint("large", i), largest); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "backup")
	s, err := Save(ctx, Source{Endpoint: at, Token: admin}, file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Rows != rows+5 || s.Cluster != "old" || len(s.SHA256) != 64 {
		t.Errorf("%+v", s)
	}
	if again, err := Verify(file); err != nil || again.SHA256 != s.SHA256 || again.Bytes != s.Bytes {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := Save(ctx, Source{Endpoint: at, Token: admin}, file); !errors.Is(err, ErrExists) {
		t.Errorf("a second backup to the same file: %v", err)
	}
	if _, err := Save(ctx, Source{Endpoint: at}, file+"2"); !errors.Is(err, ErrRefused) {
		t.Errorf("without a token: %v", err)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) != 1 {
		t.Errorf("remaining files: %v", left)
	}

	_, to := serve(t, "new")
	if _, err := Restore(ctx, to, file); err != nil {
		t.Fatal(err)
	}
	if n, err := to.Count(ctx, "a"); err != nil || n != rows {
		t.Errorf("%d rows, %v", n, err)
	}
	row, err := to.Get(ctx, "a", "k0003")
	old, err2 := from.Get(ctx, "a", "k0003")
	if err != nil || err2 != nil || string(row.Value) != string(old.Value) {
		t.Errorf("%s, was %s: %v %v", row.Value, old.Value, err, err2)
	}
	if row, err := to.Get(ctx, "b", "large4"); err != nil || string(row.Value) != string(largest) {
		t.Errorf("got %d bytes, want %d, %v", len(row.Value), len(largest), err)
	}
	if tables, err := to.Tables(ctx); err != nil || len(tables) != 2 {
		t.Errorf("tables %v, %v", tables, err)
	}
	if _, err := Restore(ctx, to, file); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restoring into a cluster with rows: %v", err)
	}
	// A restore into tables that were cleared since then is a new restore, not a repetition of the first.
	for _, table := range s.Tables {
		if err := to.DropTable(ctx, table); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Restore(ctx, to, file); err != nil {
		t.Fatal(err)
	}
	if n, err := to.Count(ctx, "a"); err != nil || n != rows || len(s.Tables) != 2 {
		t.Errorf("restored again: %d rows of %v, %v", n, s.Tables, err)
	}
}

func TestDamagedBackups(t *testing.T) {
	ctx := t.Context()
	at, from := serve(t, "old")
	if err := from.CreateTable(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Put(ctx, "a", "k", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := Save(ctx, Source{Endpoint: at, Token: admin}, file); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, to := serve(t, "new")
	for n := 0; n < len(whole); n += 5 {
		bad := append([]byte{}, whole...)
		bad[n] ^= 0x40
		for _, text := range [][]byte{bad, whole[:n]} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(file); err == nil {
				t.Fatalf("damage at byte %d of %d was not detected", n, len(whole))
			}
		}
	}
	if _, err := Restore(ctx, to, file); !errors.Is(err, cloudsql.ErrSnapshot) {
		t.Errorf("restoring a damaged backup: %v", err)
	}
	if tables, err := to.Tables(ctx); err != nil || len(tables) != 0 {
		t.Errorf("the failed restore left tables %v, %v", tables, err)
	}
}

// TestInterruptedRestore interrupts a restore. A second restore refuses the remaining rows as data of the cluster
// and succeeds once the tables are cleared.
func TestInterruptedRestore(t *testing.T) {
	ctx := t.Context()
	at, from := serve(t, "old")
	if err := from.CreateTable(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	const rows = 20 * batchRows
	for i := 0; i < rows; i += batchRows {
		var some api.Transaction
		for k := range batchRows {
			some.Writes = append(some.Writes, api.Write{Do: command.Put, Table: "a", Key: fmt.Sprintf("k%06d", i+k), Value: json.RawMessage("{}")})
		}
		if _, err := from.Transact(ctx, some); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := Save(ctx, Source{Endpoint: at, Token: admin}, file); err != nil {
		t.Fatal(err)
	}
	_, to := serve(t, "new")
	short, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := Restore(short, to, file)
		ended <- err
	}()
	for len(ended) == 0 {
		if n, err := to.Count(ctx, "a"); err == nil && n > 0 {
			break
		}
	}
	end()
	<-ended // on a fast machine it has completed: its rows are refused like those of a part
	if _, err := Restore(ctx, to, file); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restoring over a partial restore: %v", err)
	}
	for { // writes in flight at the interruption may arrive after the tables were cleared
		if err := to.ClearTable(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(ctx, to, file); err == nil {
			break
		} else if !errors.Is(err, ErrNotEmpty) {
			t.Fatal(err)
		}
	}
	if n, err := to.Count(ctx, "a"); err != nil || n != rows {
		t.Errorf("%d rows, %v", n, err)
	}
}
