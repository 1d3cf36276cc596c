package topology

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
	shaping "skerry/internal/link/userspace/shaper"
)

// lossOf builds a link whose loss is written as text.
func lossOf(t *testing.T, text string) (link.Quality, error) {
	t.Helper()
	got, err := build(t, "nodes: [a, b]\nlinks: [{between: [a, b], rtt: 10ms, loss: "+text+"}]", nil)
	if err != nil {
		return link.Quality{}, err
	}
	return got.Links[0].AB, nil
}

func TestLoss(t *testing.T) {
	for text, want := range map[string]link.Quality{
		"1%":                              {Loss: 0.01},
		"{random: 1%}":                    {Loss: 0.01},
		"{burst: {mean: 20%, length: 4}}": {Burst: &link.GilbertElliott{P: 0.0625, R: 0.25, K: 1}},
		"{burst: {p: 1%, r: 10%}}":        {Burst: &link.GilbertElliott{P: 0.01, R: 0.1, K: 1}},
		"{burst: {p: 1%, r: 10%, h: 50%, k: 75%}}":   {Burst: &link.GilbertElliott{P: 0.01, R: 0.1, H: 0.5, K: 0.75}},
		"{random: 2%, burst: {mean: 0%, length: 1}}": {Loss: 0.02, Burst: &link.GilbertElliott{R: 1, K: 1}},
	} {
		got, err := lossOf(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want.Latency = got.Latency
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"{burst: {}}":                        "loss.burst: the share of losses is missing; give mean and length, or p and r",
		"{burst: {mean: 1%}}":                "burst: the length of bursts is missing",
		"{burst: {mean: 1%, length: 0.5}}":   "0.5 is too small",
		"{burst: {mean: 90%, length: 2}}":    "bursts of 2 packets, with one packet between them that arrives, lose less than 90%; give a mean of 66.7% or less, or longer bursts",
		"{burst: {p: 1%}}":                   "burst: r, the probability that a burst ends, is missing",
		"{burst: {p: 1%, r: 5%, length: 3}}": "mean and length exclude p, r, h and k",
		"{burst: {mean: 1%, p: 1%}}":         "mean and length exclude p, r, h and k",
		"{burst: {mean: 1%, lenght: 3}}":     `unknown key "lenght"; did you mean "length"?`,
		"2":                                  "for percent write 2%",
	} {
		if _, err := lossOf(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", text, err, want)
		}
	}
}

// A recorded spec is read as the same spec.
func TestLossAsJSON(t *testing.T) {
	for text, want := range map[string]string{"1%": `"1%"`, "{random: 1%, burst: {mean: 2%, length: 8}}": `{"random":"1%","burst":{"mean":"2%","length":8}}`} {
		s, err := decodeSpec("t.yaml", []byte("defaults: {loss: "+text+"}"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(s.Defaults.Loss)
		if err != nil || string(got) != want {
			t.Errorf("%s is %s, %v, want %s", text, got, err, want)
		}
		again, err := decodeSpec("t.yaml", []byte(`{"defaults": {"loss": `+string(got)+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Error(diff)
		}
	}
}

// A million packets through the model of the userspace engine have the configured loss and burst length, within five
// standard errors.
func TestDrawnBursts(t *testing.T) {
	for text, want := range map[string]struct{ share, length float64 }{
		"{burst: {mean: 1%, length: 5}}":           {0.01, 5},
		"{burst: {mean: 20%, length: 4}}":          {0.2, 4},
		"{burst: {p: 0.5%, r: 12.5%}}":             {0.005 / 0.13, 8},
		"{burst: {p: 2%, r: 20%, h: 50%, k: 99%}}": {0.5/11 + 0.01*10/11, 0},
	} {
		q, err := lossOf(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(q.LossShare()-want.share) > 1e-9 {
			t.Errorf("%s: LossShare is %g, want %g", text, q.LossShare(), want.share)
		}
		const packets = 1_000_000
		s := shaping.New(shaping.Compile(q), "a~b", "ab", 1)
		lost, bursts, before := 0, 0, false
		for range packets {
			now := s.Fate()&shaping.Lost != 0
			if now {
				lost++
			}
			if now && !before {
				bursts++
			}
			before = now
		}
		// Packets of one burst are correlated, which increases the variance of the share by at most a factor of
		// (2-r-p)/(r+p).
		b := *q.Burst
		share := float64(lost) / packets
		deviation := math.Sqrt(want.share * (1 - want.share) * (2 - b.P - b.R) / (b.P + b.R) / packets)
		if math.Abs(share-want.share) > 5*deviation {
			t.Errorf("%s: %.4f of packets are lost, want %.4f within %.4f", text, share, want.share, 5*deviation)
		}
		length := float64(lost) / float64(bursts)
		deviation = math.Sqrt(want.length*(want.length-1)) / math.Sqrt(float64(bursts))
		if want.length > 0 && math.Abs(length-want.length) > 5*deviation {
			t.Errorf("%s: bursts are of %.3f packets, want %.3f within %.3f", text, length, want.length, 5*deviation)
		}
		t.Logf("%s: lost %.5f (%.5f), in bursts of %.3f", text, share, want.share, length)
	}
}
