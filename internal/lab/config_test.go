package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
	"skerry/internal/topology/flavor"
)

func TestInvalidConfigIsRejected(t *testing.T) {
	tests := map[string]func(*Config){
		"name":           func(c *Config) { c.Name = "No Such" },
		"no nodes":       func(c *Config) { c.Topology.Nodes = nil },
		"node twice":     func(c *Config) { c.Topology.Nodes[1].Name = "n0" },
		"node with path": func(c *Config) { c.Topology.Nodes[1].Name = "../n0" },
		"link twice":     func(c *Config) { c.Topology.Links[1].ID = "n0~n1" },
		"link to itself": func(c *Config) { c.Topology.Links[1].B = c.Topology.Links[1].A },
		"link nowhere":   func(c *Config) { c.Topology.Links[1].B = "n7" },
		"scale":          func(c *Config) { c.Scale = -1 },
		"no program":     func(c *Config) { c.Exe = "/nowhere/skerry" },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			c := Config{Name: "checked", Topology: ring(3, 0), Exe: os.Args[0], StateDir: filepath.Join(t.TempDir(), "state")}
			spoil(&c)
			if _, err := Up(t.Context(), c); !errors.Is(err, ErrInvalid) {
				t.Errorf("error %v, want ErrInvalid", err)
			}
			if _, err := os.Stat(c.StateDir); err == nil {
				t.Error("a failed call created something")
			}
		})
	}
}

func TestSanitizeName(t *testing.T) {
	for from, want := range map[string]string{
		"azure8": "azure8", "My Cloud": "my-cloud", "8 sites!": "sites", "": "lab", "ring:16,rtt=40ms": "ring-16-rtt-40ms",
		strings.Repeat("x", 60): strings.Repeat("x", 40),
	} {
		if got := SanitizeName(from); got != want || !validName.MatchString(got) {
			t.Errorf("NameOf(%q) = %q, want %q", from, got, want)
		}
	}
}

// A directory that the user made stays when its last lab ends. One that another user made in a shared folder is
// refused.
func TestForeignDirectoriesAreKept(t *testing.T) {
	c := config(t, "dirs")
	for _, dir := range []string{c.StateDir, c.DataDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{c.StateDir, c.DataDir} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v, %v; want it empty", dir, entries, err)
		}
	}
	parent := filepath.Dir(c.DataDir)
	if err := errors.Join(os.Chmod(parent, 0o777|os.ModeSticky), os.Chown(c.DataDir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if l, err := Up(t.Context(), c); err == nil {
		t.Errorf("%s of another user was accepted", c.DataDir)
		_ = l.Down(t.Context())
	}
	dangling := filepath.Join(parent, "dangling")
	if err := os.Symlink("/nowhere/at/all", dangling); err != nil {
		t.Fatal(err)
	}
	c.DataDir = dangling
	if l, err := Up(t.Context(), c); err == nil {
		t.Error("a dangling symlink was accepted")
		_ = l.Down(t.Context())
	}
}

// Settings that a node with a whole machine cannot have are refused with the reason.
func TestCheckWholeMachines(t *testing.T) {
	plain := func() topology.Topology {
		return topology.Topology{Nodes: []topology.Node{{Name: "a", Role: topology.Client}, {Name: "b"}, {Name: "c"}}}
	}
	for name, tt := range map[string]struct {
		change  func(*topology.Topology)
		whole   []string
		refused bool
	}{
		"unsupported settings":  {func(*topology.Topology) {}, []string{"a", "b", "c"}, false},
		"an overlay":            {func(t *topology.Topology) { t.Overlay.Kind = "babel" }, []string{"b"}, true},
		"the absence of one":    {func(t *topology.Topology) { t.Overlay.Kind = topology.Direct }, []string{"b"}, false},
		"a service":             {func(t *topology.Topology) { t.Service.Kind = topology.HostPort }, []string{"b"}, true},
		"a limit":               {func(t *topology.Topology) { t.Nodes[1].CPU = 1 }, []string{"b"}, true},
		"a limit of memory":     {func(t *topology.Topology) { t.Nodes[1].Memory = 1 }, []string{"b"}, true},
		"a flavor":              {func(t *topology.Topology) { t.Nodes[1].Flavor = &flavor.Flavor{} }, []string{"b"}, true},
		"another node's limit":  {func(t *topology.Topology) { t.Nodes[2].CPU = 1 }, []string{"b"}, false},
		"a volume":              {func(t *topology.Topology) { t.Volume.Kind = topology.LoopVolume }, []string{"b"}, true},
		"a volume for others":   {func(t *topology.Topology) { t.Volume.Kind = topology.LoopVolume }, []string{"a"}, false},
		"settings of TCP":       {func(t *topology.Topology) { t.TCP = map[string]string{"ecn": "1"} }, []string{"b"}, true},
		"no whole machine":      {func(t *topology.Topology) { t.Overlay.Kind = "babel" }, nil, false},
		"an overlay and limits": {func(t *topology.Topology) { t.Overlay.Kind = "babel"; t.Nodes[1].CPU = 1 }, []string{"b"}, true},
	} {
		cloud := plain()
		tt.change(&cloud)
		err := CheckWholeMachines(cloud, tt.whole)
		if (err != nil) != tt.refused || err != nil && (!errors.Is(err, ErrInvalid) || advice.Of(err) == "") {
			t.Errorf("%s: %v (%s)", name, err, advice.Of(err))
		}
	}
}
