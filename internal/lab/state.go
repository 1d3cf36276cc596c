package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"skerry/internal/link"
	"skerry/internal/procfs"
	"skerry/internal/service"
	"skerry/internal/topology"
)

// state is lab.json: what a lab is, written when it is up. A lab without it is half
// made or half gone.
type state struct {
	Version   int               `json:"version"`
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Boot      string            `json:"boot"`
	Created   time.Time         `json:"created"`
	Ephemeral bool              `json:"ephemeral"`
	Owner     procfs.Process    `json:"owner"` // of an ephemeral lab
	Holder    *namedProcess     `json:"holder,omitempty"`
	Engine    string            `json:"engine"`
	Why       string            `json:"engine_why"`
	Emulator  *procfs.Process   `json:"emulator,omitempty"`
	Topology  topology.Topology `json:"topology"`
	Nodes     []nodeState       `json:"nodes"`
	Data      string            `json:"data"`
	Groups    bool              `json:"control_groups"`
	Warnings  []string          `json:"warnings,omitempty"`
	Settings  map[string]string `json:"settings"`
	Seed      uint64            `json:"seed"`
	// Numbered says that the devices of links have addresses of their own.
	Numbered bool `json:"numbered,omitempty"`
	// Service is how clients reach the database, nil without one.
	Service *service.Plan `json:"service,omitempty"`
}

const stateVersion = 1

// nodeState is a node that was made; the topology has what was asked for.
type nodeState struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
	Dir  string `json:"dir"`
	// Netns is a path; Shown is the name that `ip netns` knows it by, "" for none.
	Netns string `json:"netns"`
	Shown string `json:"shown,omitempty"`
}

// linksState is links.json.
type linksState struct {
	Factor float64 `json:"factor"`
	Links  []Link  `json:"links"`
}

func (l linksState) clone() linksState {
	l.Links = append([]Link(nil), l.Links...)
	return l
}

// specs are what an engine is asked for to make the links.
func (s state) specs(links []Link) []link.Spec {
	netns := make(map[string]string, len(s.Nodes))
	for _, n := range s.Nodes {
		netns[n.Name] = n.Netns
	}
	specs := make([]link.Spec, len(links))
	for i, l := range links {
		specs[i] = link.Spec{
			ID: l.ID, AB: l.AB, BA: l.BA, Seed: seedOf(s.Seed, l.ID),
			A: link.End{Netns: netns[l.A], Device: l.Device},
			B: link.End{Netns: netns[l.B], Device: l.Device},
		}
	}
	return specs
}

func readState(p place) (state, error) {
	var s state
	err := readJSON(p.file(stateFile), &s)
	return s, err
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("read state of lab: %w", err)
	}
	return nil
}

// writeJSON replaces a file in one step.
func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	next := path + ".new"
	err = os.WriteFile(next, data, 0o600)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		err = fmt.Errorf("write state of lab: %w", err)
		if gone := os.Remove(next); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
