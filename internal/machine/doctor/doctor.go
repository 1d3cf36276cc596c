// Package doctor determines what this machine can do for a lab by trying it in separate namespaces, which end with their
// threads.
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/install"
)

// State of a capability.
type State string

// States.
const (
	OK      State = "ok"
	Limited State = "limited" // labs run, but something is less than it could be
	Missing State = "missing"
)

// Finding is the result for one capability.
type Finding struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	// Mend explains how to fix it, as a command if possible.
	Mend string `json:"mend,omitempty"`
}

// Report is the result of an examination.
type Report struct {
	// Runnable is set if a lab can run. Why names the engine, or the obstacle.
	Runnable bool   `json:"runnable"`
	Why      string `json:"why"`
	// Engine is the default link engine, "" if none can run.
	Engine   string    `json:"engine,omitempty"`
	Findings []Finding `json:"findings"`
}

// Examiner holds the inputs of an examination.
type Examiner struct {
	Store   install.Store
	Recipes []install.Recipe
	// Data is the directory for the nodes' directories.
	Data string
}

// Examine checks all capabilities.
func (e Examiner) Examine(ctx context.Context) Report {
	rights := namespaces(ctx)
	links := links(rights)
	var r Report
	r.conclude(rights, links)
	r.Findings = append(r.Findings, rights.findings()...)
	r.Findings = append(r.Findings, links.findings()...)
	r.Findings = append(r.Findings, wireGuard(rights), ipvs(), controlGroups(), diskLimits(e.Data), realTime(), clock())
	r.Findings = append(r.Findings, processors(), memory(), disk(e.Store.Dir), openFiles(), processes())
	r.Findings = append(r.Findings, apt(ctx, e.Recipes), iproute2())
	r.Findings = append(r.Findings, databases(ctx, e.Store, e.Recipes)...)
	return r
}

// conclude sets Runnable, Why and Engine.
func (r *Report) conclude(rights rights, l linkers) {
	switch {
	case rights.network == nil && l.netem == nil:
		r.Runnable, r.Engine, r.Why = true, "netem", "labs run here, with links by the kernel's netem"
	case rights.network == nil && l.userspace == nil:
		r.Runnable, r.Engine, r.Why = true, "userspace", "labs run here, with links by the userspace engine over "+string(l.kind)+" devices"
	case rights.network == nil:
		r.Why = "no lab can run here: no link engine works"
	case rights.users == nil:
		r.Runnable, r.Engine, r.Why = true, "userspace", "labs run here, each in a user namespace of its own, with links by the userspace engine"
	default:
		r.Why = "no lab can run here: network namespaces cannot be made"
	}
}

func failed(name string, state State, err error) Finding {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	return Finding{Name: name, State: state, Detail: text, Mend: advice.Of(err)}
}

// Write prints the report as text: a line per finding with its fix below, and the conclusion.
func (r Report) Write(w io.Writer) error {
	name, state := 0, len(Missing)
	for _, f := range r.Findings {
		name = max(name, len(f.Name))
	}
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", name, f.Name, state, f.State, f.Detail)
		if f.Mend != "" {
			fmt.Fprintf(&b, "%-*s  %-*s  -> %s\n", name, "", state, "", f.Mend)
		}
	}
	why := r.Why
	if why != "" {
		why = strings.ToUpper(why[:1]) + why[1:]
	}
	fmt.Fprintf(&b, "\n%s.\n", why)
	_, err := io.WriteString(w, b.String())
	return err
}

// apt checks whether databases can be downloaded.
func apt(ctx context.Context, recipes []install.Recipe) Finding {
	const name = "apt"
	for _, r := range recipes {
		if err := install.Fetchable(ctx, r); err != nil {
			return failed(name, Limited, err)
		}
	}
	return Finding{Name: name, State: OK, Detail: "databases can be fetched"}
}

// databases lists the installable databases.
func databases(ctx context.Context, s install.Store, recipes []install.Recipe) []Finding {
	var found []Finding
	for _, d := range s.List(ctx, recipes) {
		f := Finding{Name: d.Name, State: OK, Detail: d.Version + " (" + d.Source + ", " + d.Path + ")"}
		if d.Version == "" {
			f = Finding{Name: d.Name, State: Missing, Detail: "not installed", Mend: d.Advice}
			if d.Problem != "" {
				f.Detail = d.Problem
			}
		}
		found = append(found, f)
	}
	return found
}
