package lab

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
	"skerry/internal/link"
)

func TestParseLinkEdit(t *testing.T) {
	was := link.Quality{Latency: time.Second, Loss: 0.5, Bandwidth: 1000}
	tests := map[string]struct {
		words []string
		want  link.Quality
	}{
		"one way":    {[]string{"latency=40ms"}, link.Quality{Latency: 40 * time.Millisecond, Loss: 0.5, Bandwidth: 1000}},
		"round trip": {[]string{"rtt=80ms"}, link.Quality{Latency: 40 * time.Millisecond, Loss: 0.5, Bandwidth: 1000}},
		"no limit":   {[]string{"bandwidth=unlimited", "loss=0%"}, link.Quality{Latency: time.Second}},
		"cut":        {[]string{"down=true"}, link.Quality{Latency: time.Second, Loss: 0.5, Bandwidth: 1000, Down: true}},
		"all at once": {[]string{"latency=1ms", "jitter=2ms", "distribution=pareto", "bandwidth=1mbit", "queue=4KiB", "loss=1%", "duplicate=2%",
			"reorder=3%", "corrupt=4%"}, link.Quality{Latency: time.Millisecond, Jitter: 2 * time.Millisecond, Distribution: link.Pareto,
			Bandwidth: 1e6, Queue: 4096, Loss: 0.01, Duplicate: 0.02, Reorder: 0.03, Corrupt: 0.04}},
		"bursts": {[]string{"loss={burst: {mean: 20%, length: 4}}"},
			link.Quality{Latency: time.Second, Bandwidth: 1000, Burst: &link.GilbertElliott{P: 0.0625, R: 0.25, K: 1}}},
		"nothing": {nil, was},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := parseLinkEdit(tt.words)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, e.Apply(was)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseLinkEditErrors(t *testing.T) {
	for _, words := range [][]string{
		{"latency"}, {"latency=40"}, {"latency=-4ms"}, {"latncy=4ms"}, {"loss=2"}, {"bandwidth=0mbit"},
		{"down=perhaps"}, {"distribution=flat"}, {"loss=1%",
			"loss=2%"}, {"loss={burst: {mean: 1%}}"}, {"loss={burst: {mean: 90%, length: 2}}"}, {"loss={brust: {}}"}, {"loss="},
		{"rtt=4ms", "latency=2ms"},
	} {
		if _, err := parseLinkEdit(words); !errors.Is(err, ErrSetting) {
			t.Errorf("%v: error %v, want ErrSetting", words, err)
		}
	}
	if _, err := parseLinkEdit([]string{"latncy=4ms"}); advice.Of(err) != "did you mean latency=...?" {
		t.Errorf("advice %q", advice.Of(err))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("latency=40ms")
	f.Add("=")
	f.Fuzz(func(t *testing.T, word string) {
		e, err := parseLinkEdit([]string{word})
		if err != nil {
			return
		}
		if q := e.Apply(link.Quality{}); q.Validate() != nil {
			t.Errorf("%q makes %+v: %v", word, q, q.Validate())
		}
	})
}

func TestLinkChanges(t *testing.T) {
	links := []Link{
		{ID: "Pune~Sydney", A: "Pune", B: "Sydney"},
		{ID: "Pune~Tokyo", A: "Pune", B: "Tokyo"},
		{ID: "Sydney~Tokyo", A: "Sydney", B: "Tokyo"},
	}
	tests := map[string]struct {
		patterns  []string
		direction EditDirection
		want      []string // changed directions
	}{
		"an ID":                     {[]string{"Pune~Sydney"}, EditBoth, []string{"Pune>Sydney", "Sydney>Pune"}},
		"reverse direction":         {[]string{"Sydney~Pune"}, EditAB, []string{"Sydney>Pune"}},
		"back":                      {[]string{"Sydney~Pune"}, EditBA, []string{"Pune>Sydney"}},
		"all of a node, outgoing":   {[]string{"Sydney"}, EditAB, []string{"Sydney>Pune", "Sydney>Tokyo"}},
		"all of a node, incoming":   {[]string{"Sydney~*"}, EditBA, []string{"Pune>Sydney", "Tokyo>Sydney"}},
		"pattern":                   {[]string{"?une~T*"}, EditBoth, []string{"Pune>Tokyo", "Tokyo>Pune"}},
		"all, each link once":       {[]string{"*"}, EditAB, []string{"Pune>Sydney", "Pune>Tokyo", "Sydney>Tokyo"}},
		"two patterns, overlapping": {[]string{"Pune~Sydney", "Pune"}, EditAB, []string{"Pune>Sydney", "Pune>Tokyo"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := ParseLinkRequest(append(tt.patterns, "loss=1%"), tt.direction)
			if err != nil {
				t.Fatal(err)
			}
			changes, err := r.Changes(links)
			if err != nil {
				t.Fatal(err)
			}
			ends := map[string]Link{}
			for _, l := range links {
				ends[l.ID] = l
			}
			var got []string
			for _, c := range changes {
				l := ends[c.ID]
				if c.AB != nil {
					got = append(got, l.A+">"+l.B)
				}
				if c.BA != nil {
					got = append(got, l.B+">"+l.A)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each of several links between two nodes can be changed alone. All of them change only if the pattern selects them:
// the name of the pair would revert changes of single links.
func TestParallelLinks(t *testing.T) {
	down := link.Quality{Down: true}
	links := []Link{
		{ID: "Pune~Sydney#1", A: "Pune", B: "Sydney"},
		{ID: "spare", A: "Pune", B: "Sydney", AB: down, BA: down},
		{ID: "Pune", A: "Sydney", B: "Tokyo"}, // a link may have the name of a node
	}
	for pattern, want := range map[string][]string{
		"Pune~Sydney#1": {"Pune~Sydney#1"}, "Sydney~Pune#1": {"Pune~Sydney#1"}, "spare": {"spare"}, "Sydney~Pune#spare": {"spare"},
		"Pune~Sydney#*": {"Pune~Sydney#1", "spare"}, "Pune~*": {"Pune~Sydney#1", "spare"}, "Pune": {"Pune"}, "Sydney~Tokyo": {"Pune"},
	} {
		r, err := ParseLinkRequest([]string{pattern, "down=false"}, EditBoth)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := r.Changes(links)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range changes {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
	r, err := ParseLinkRequest([]string{"Sydney~Pune", "down=false"}, EditBoth)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Changes(links)
	if want := "name one link, or write 'Sydney~Pune#*' for all"; !errors.Is(err, ErrAmbiguous) || advice.Of(err) != want {
		t.Errorf("error %v (%s), want ErrSeveral (%s)", err, advice.Of(err), want)
	}
}

func TestLinkChangeErrors(t *testing.T) {
	links := []Link{{ID: "Pune~Sydney", A: "Pune", B: "Sydney"}}
	tests := map[string]struct {
		words     []string
		direction EditDirection
		want      error
		advice    string
	}{
		"misspelt":          {[]string{"Pune~Sidney", "loss=1%"}, EditBoth, ErrPattern, "did you mean Pune~Sydney?"},
		"bad pattern":       {[]string{"[~x", "loss=1%"}, EditBoth, ErrPattern, ""},
		"half a round trip": {[]string{"Pune", "rtt=1ms"}, EditAB, ErrSetting, "use latency, which is one way"},
		"direction":         {[]string{"Pune", "loss=1%"}, "up", ErrSetting, ""},
		"no link":           {[]string{"loss=1%"}, EditBoth, ErrPattern, "name a link such as Pune~Sydney, or '*' for all"},
		"no settings":       {[]string{"Pune"}, EditBoth, ErrSetting, ""},
		"not a setting":     {[]string{"Pune", "colour=red"}, EditBoth, ErrSetting, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := ParseLinkRequest(tt.words, tt.direction)
			if err == nil {
				_, err = r.Changes(links)
			}
			if !errors.Is(err, tt.want) || tt.advice != "" && advice.Of(err) != tt.advice {
				t.Errorf("error %v (%s), want %v (%s)", err, advice.Of(err), tt.want, tt.advice)
			}
		})
	}
}
