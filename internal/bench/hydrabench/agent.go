package hydrabench

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"skerry/internal/bench/agent"
	"skerry/internal/machine/host"
)

// Systems under test.
const (
	systemHydra  = "hydra"
	systemDirect = "direct"
	systemEtcd   = "etcd"
	systemEtcd5  = "etcd-5" // with as many members as Hydra
)

// Operations.
const (
	opWrite = "write"
	opRead  = "read"  // of this cloud's database
	opMix   = "mix"   // half the workers read, half write
	opApply = "apply" // writes that are answered when this cloud's database has them
	opWatch = "watch"
	opFill  = "fill"
)

// job is the line that an agent begins with. One that watches, and one without seconds,
// goes on until its input ends.
type job struct {
	System    string   `json:"system"`
	Op        string   `json:"op"`
	Endpoints []string `json:"endpoints,omitempty"`
	Workers   int      `json:"workers"`
	Seconds   float64  `json:"seconds"`
	Keys      int      `json:"keys"`
	Payload   int      `json:"payload"` // bytes of a value
	At        string   `json:"at,omitempty"`
	// DNS and Zone, when set, are how the load balancers are found.
	DNS  string `json:"dns,omitempty"`
	Zone string `json:"zone,omitempty"`
}

// answer is what an agent prints.
type answer struct {
	Load  Load   `json:"load"`
	Seen  []try  `json:"seen,omitempty"`
	Error string `json:"error,omitempty"`
}

// Failure implements agent.Answer.
func (a answer) Failure() string { return a.Error }

// try is one write of a watcher: Unix times in ns.
type try struct {
	Begin int64 `json:"b"`
	End   int64 `json:"e"`
	OK    bool  `json:"ok"`
}

// Serve is the agent: it does what the job on in asks for and prints the answer.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var j job
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &j)
	}
	var a answer
	if err == nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if j.Seconds == 0 {
			go func() {
				_, _ = io.Copy(io.Discard, lines) // its end is what it is read for
				cancel()
			}()
		}
		a, err = perform(ctx, j)
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	return json.NewEncoder(out).Encode(a)
}

func startAgent(ctx context.Context, node host.Host, exe string, j job) (*agent.Agent[answer], error) {
	return agent.Start[answer](ctx, node, exe, []string{"agent", "hydra"}, []string{"GOGC=400"}, j)
}
