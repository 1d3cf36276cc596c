package dbbench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/churn"
	"skerry/internal/load"
)

// memory is a database whose clients share a map; every n-th write is lost.
type memory struct {
	database.Database
	mu   sync.Mutex
	rows map[string][]load.Field
	lose int
	n    int
	// enough, when set, is closed at the 20th write.
	enough chan struct{}
}

func (m *memory) Open(_ context.Context, properties map[string]string) (load.Client, error) {
	if properties["at"] == "" {
		return nil, errors.New("nobody said where it is")
	}
	return client{m: m}, nil
}

type client struct {
	load.Client
	m *memory
}

func (c client) Read(_ context.Context, _, key string, _ []string, dst []load.Field) ([]load.Field, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	row, ok := c.m.rows[key]
	if !ok {
		return dst, load.ErrNotFound
	}
	return append(dst, row...), nil
}

func (c client) Insert(_ context.Context, _, key string, values []load.Field) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.m.n == 20 && c.m.enough != nil {
		close(c.m.enough)
	}
	if c.m.n++; c.m.lose == 0 || c.m.n%c.m.lose != 0 {
		var row []load.Field
		for _, f := range values {
			row = append(row, load.Field{Name: f.Name, Value: append([]byte{}, f.Value...)})
		}
		c.m.rows[key] = row
	}
	return nil
}

func (c client) Update(ctx context.Context, table, key string, values []load.Field) error {
	return c.Insert(ctx, table, key, values)
}

func (client) Close() error { return nil }

// ask has an agent do jobs, and returns its answer.
func ask(t *testing.T, db database.Database, jobs io.Reader) answer {
	t.Helper()
	var out strings.Builder
	if err := Serve(t.Context(), jobs, &out, map[string]database.Database{"memory": db}); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal([]byte(out.String()), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAgent(t *testing.T) {
	line := func(j job) string {
		text, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	at := map[string]string{"at": "home"}
	t.Run("it says what is wrong", func(t *testing.T) {
		for _, text := range []string{"", line(job{Kind: jobCost, Database: "none"}), line(job{Kind: jobCost, Database: "memory"}),
			line(job{Kind: jobWrite, Database: "memory", Properties: at, Writers: 1, Rate: 10})} {
			if a := ask(t, &memory{rows: map[string][]load.Field{}}, strings.NewReader(text)); a.Error == "" {
				t.Errorf("%q: %+v", text, a)
			}
		}
	})
	t.Run("it writes until it is told to check", func(t *testing.T) {
		for lose, lost := range map[int]bool{0: false, 3: true} {
			db := &memory{rows: map[string][]load.Field{}, lose: lose, enough: make(chan struct{})}
			in, out := io.Pipe()
			go func() {
				_, _ = io.WriteString(out, line(job{Kind: jobWrite, Database: "memory", Properties: at, Writers: 2, Rate: 1000}))
				<-db.enough
				_, _ = io.WriteString(out, line(job{Properties: at}))
			}()
			a := ask(t, db, in)
			if a.Error != "" || a.Account == nil || a.Account.Writes == 0 || errors.Is(a.Account.Err(), churn.ErrLost) != lost {
				t.Errorf("losing every %d: %+v", lose, a)
			}
		}
	})
}

func TestText(t *testing.T) {
	r := Result{Cores: 2, Engine: "netem", Databases: []Database{
		{Name: "redis", Version: "7", Nodes: 8, ReadySeconds: 3.44, NodeBytes: 4e6,
			Cost: &Cost{Client: 120, Handwritten: 100}, Churn: &churn.Report{Steps: make([]churn.Step, 20), Account: churn.Account{Rows: 90, Lost: 1, Stale: 1}}},
		{Name: "etcd", Version: "3", Notes: []string{"five are enough"}, Cost: &Cost{Client: 50}},
	}}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3.4", "120 %", "20       90    2", "etcd: five are enough"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

func TestUnknownPart(t *testing.T) {
	if _, err := Run(t.Context(), Options{Only: []string{"costs"}}); !errors.Is(err, ErrPart) {
		t.Errorf("error %v", err)
	}
}
