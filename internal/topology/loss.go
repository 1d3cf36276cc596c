package topology

import (
	"encoding/json"
	"fmt"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/link"
)

// LossSpec is which packets a link loses. What is left out is no loss.
type LossSpec struct {
	// Random is the share of packets that are lost, each drawn on its own.
	Random unit.Fraction `yaml:"random" json:"random,omitempty"`
	// Burst adds losses that come in bursts.
	Burst *BurstSpec `yaml:"burst" json:"burst,omitempty"`
}

// Shorthand: "loss: 1%" is "loss: {random: 1%}".
func (LossSpec) Shorthand() string { return "random" }

// MarshalJSON writes a loss without bursts as the share that it is.
func (s LossSpec) MarshalJSON() ([]byte, error) {
	if s.Burst == nil {
		return json.Marshal(s.Random)
	}
	type spec LossSpec // without this method
	return json.Marshal(spec(s))
}

// String is what a message says of it: "1%", or "1%, in bursts".
func (s LossSpec) String() string {
	q := s.Apply(link.Quality{})
	if s.Burst == nil {
		return s.Random.String()
	}
	return fmt.Sprintf("%.3g%%, in bursts", 100*q.LossShare())
}

// Apply replaces all losses of a quality.
func (s LossSpec) Apply(q link.Quality) link.Quality {
	q.Loss, q.Burst = float64(s.Random), nil
	if s.Burst != nil {
		q.Burst = s.Burst.model()
	}
	return q
}

// BurstSpec is losses by the model of Gilbert and Elliott. A link is good or bad, and changes from
// packet to packet. Give mean and length, and a bad link loses every packet, a good one none; or the
// model's own probabilities as netem's gemodel has them, p and r and maybe h and k.
type BurstSpec struct {
	// Mean is the share of packets that are lost in bursts, over a long time.
	Mean *unit.Fraction `yaml:"mean" json:"mean,omitempty"`
	// Length is how many packets in a row are lost on average. Losses that are drawn one by one
	// have a length of about 1.
	Length *float64 `yaml:"length" json:"length,omitempty" jsonschema:"minimum=1"`
	// P is the probability that a good link becomes bad, for each packet.
	P *unit.Fraction `yaml:"p" json:"p,omitempty"`
	// R is the probability that a bad link becomes good, for each packet.
	R *unit.Fraction `yaml:"r" json:"r,omitempty"`
	// H is the share that a bad link delivers: netem's 1-h is the share that it loses.
	H *unit.Fraction `yaml:"h" json:"h,omitempty" jsonschema:"default=0%"`
	// K is the share that a good link delivers: netem's 1-k is the share that it loses.
	K *unit.Fraction `yaml:"k" json:"k,omitempty" jsonschema:"default=100%"`
}

var _ strict.Decoder = (*BurstSpec)(nil)

// Alternatives: bursts are given by what they look like, or by the model's probabilities.
func (BurstSpec) Alternatives() [][]string { return [][]string{{"mean", "p"}} }

// DecodeNode implements strict.Decoder: the keys depend on each other.
func (s *BurstSpec) DecodeNode(n *strict.Node, path string, report func(strict.Problem)) {
	type spec BurstSpec // without this method
	ps := strict.Decode(n, (*spec)(s), path)
	for _, p := range ps {
		report(p)
	}
	fail := func(hint, format string, args ...any) {
		report(strict.Problem{Pos: n.Pos, Path: path, Message: path + ": " + fmt.Sprintf(format, args...), Hint: hint})
	}
	const keys = "give mean and length, or p and r"
	switch {
	case len(ps) > 0:
	case (s.Mean != nil || s.Length != nil) && (s.P != nil || s.R != nil || s.H != nil || s.K != nil):
		fail(keys, "mean and length exclude p, r, h and k")
	case s.Mean == nil && s.P == nil:
		fail(keys, "nothing says how much is lost in bursts")
	case s.Mean != nil && s.Length == nil:
		fail(keys, "nothing says how long bursts are")
	case s.P != nil && s.R == nil:
		fail(keys, "nothing says how bursts end")
	case s.Mean != nil && float64(*s.Mean) > *s.Length/(1+*s.Length):
		fail(fmt.Sprintf("give a mean of %.3g%% or less, or longer bursts", 100**s.Length/(1+*s.Length)),
			"bursts of %g packets, with one packet between them that arrives, lose less than %v", *s.Length, *s.Mean)
	}
}

// model is the model with its probabilities. Of mean m and length l: r = 1/l and m = p/(p+r).
func (s BurstSpec) model() *link.GilbertElliott {
	if s.Mean != nil {
		mean, r := float64(*s.Mean), 1 / *s.Length
		return &link.GilbertElliott{P: r * mean / (1 - mean), R: r, H: 0, K: 1}
	}
	of := func(f *unit.Fraction, otherwise float64) float64 {
		if f == nil {
			return otherwise
		}
		return float64(*f)
	}
	return &link.GilbertElliott{P: of(s.P, 0), R: of(s.R, 0), H: of(s.H, 0), K: of(s.K, 1)}
}
