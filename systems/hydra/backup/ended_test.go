package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
)

// TestRestoreEnded ends a restore half way: the part that it left is refused as rows of the
// cluster's own, and is made whole once its tables are cleared.
func TestRestoreEnded(t *testing.T) {
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
	<-ended // on a fast machine it was done before: its rows are refused like a part's
	if _, err := Restore(ctx, to, file); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over a part: %v", err)
	}
	for { // what was on its way when it ended may come after the tables were cleared
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
