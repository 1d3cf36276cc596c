package topology

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

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

// TCPSpec tunes TCP on all nodes. The names are those of Linux (net.ipv4.tcp_...), without that prefix; the kernel's
// ip-sysctl page documents them.
type TCPSpec struct {
	// CongestionControl is one that the kernel of every machine of the lab has, such as cubic, bbr or reno.
	CongestionControl *string `yaml:"congestion_control" json:"congestion_control,omitempty" jsonschema:"example=cubic,example=bbr,default=cubic"`
	// Rmem is the least, the first and the largest receive buffer of a connection, in bytes.
	Rmem *string `yaml:"rmem" json:"rmem,omitempty" jsonschema:"default=4096 131072 67108864"`
	// Wmem is the least, the first and the largest send buffer of a connection, in bytes.
	Wmem *string `yaml:"wmem" json:"wmem,omitempty" jsonschema:"default=4096 65536 67108864"`
	// SlowStartAfterIdle has a connection that was idle begin with a small window again.
	SlowStartAfterIdle *bool `yaml:"slow_start_after_idle" json:"slow_start_after_idle,omitempty" jsonschema:"default=true"`
	// ECN is 0 for no explicit congestion notification, 1 to request it, 2 to accept it when the other end requests it.
	ECN *int `yaml:"ecn" json:"ecn,omitempty" jsonschema:"minimum=0,maximum=2,default=2"`
}

// merge returns s with what over gives.
func (s TCPSpec) merge(over TCPSpec) TCPSpec {
	override(&s.CongestionControl, over.CongestionControl)
	override(&s.Rmem, over.Rmem)
	override(&s.Wmem, over.Wmem)
	override(&s.SlowStartAfterIdle, over.SlowStartAfterIdle)
	override(&s.ECN, over.ECN)
	return s
}

// validCongestionControl matches names that a kernel can have: shorter than TCP_CA_NAME_MAX, 16.
var validCongestionControl = regexp.MustCompile(`^[a-z][a-z0-9_]{0,14}$`)

func (b *builder) addTCP() {
	s := b.spec.Defaults.TCP
	given := map[string]string{}
	if c := s.CongestionControl; c != nil {
		given["congestion_control"] = *c
		if !validCongestionControl.MatchString(*c) {
			b.fail("defaults.tcp.congestion_control", fmt.Sprintf("%q cannot be the name of a congestion control", *c),
				"choose one of /proc/sys/net/ipv4/tcp_available_congestion_control, such as cubic, bbr or reno")
		}
	}
	b.addBuffer(given, "rmem", s.Rmem)
	b.addBuffer(given, "wmem", s.Wmem)
	if s.SlowStartAfterIdle != nil {
		given["slow_start_after_idle"] = "0"
		if *s.SlowStartAfterIdle {
			given["slow_start_after_idle"] = "1"
		}
	}
	if s.ECN != nil {
		given["ecn"] = strconv.Itoa(*s.ECN)
	}
	if len(given) > 0 {
		b.t.TCP = given
	}
}

// addBuffer adds the three sizes of a buffer, as the kernel writes them.
func (b *builder) addBuffer(given map[string]string, name string, text *string) {
	if text == nil {
		return
	}
	sizes := strings.Fields(*text)
	given[name] = strings.Join(sizes, " ")
	last := int64(1)
	for _, size := range sizes {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < last || n > math.MaxInt32 {
			last = math.MaxInt64
			break
		}
		last = n
	}
	if len(sizes) != 3 || last == math.MaxInt64 {
		b.fail("defaults.tcp."+name, fmt.Sprintf("%q is not three sizes in bytes, the smallest first, below 2 GiB", *text),
			"write the least, the first and the largest, such as 4096 131072 6291456")
	}
}
