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

// LossSpec selects the packets that a link loses. Omitted keys mean no loss.
type LossSpec struct {
	// Random is the share of packets lost independently of each other.
	Random unit.Fraction `yaml:"random" json:"random,omitempty"`
	// Burst adds losses that come in bursts.
	Burst *BurstSpec `yaml:"burst" json:"burst,omitempty"`
}

func (LossSpec) Shorthand() string { return "random" }

// MarshalJSON writes a loss without bursts as a plain share.
func (s LossSpec) MarshalJSON() ([]byte, error) {
	if s.Burst == nil {
		return json.Marshal(s.Random)
	}
	type spec LossSpec // without this method
	return json.Marshal(spec(s))
}

// String returns "1%", or "1%, in bursts".
func (s LossSpec) String() string {
	q := s.Apply(link.Quality{})
	if s.Burst == nil {
		return s.Random.String()
	}
	return fmt.Sprintf("%.3g%%, in bursts", 100*q.LossShare())
}

// Apply returns q with its losses replaced.
func (s LossSpec) Apply(q link.Quality) link.Quality {
	q.Loss, q.Burst = float64(s.Random), nil
	if s.Burst != nil {
		q.Burst = s.Burst.model()
	}
	return q
}

// BurstSpec models losses by Gilbert and Elliott. A link is in a good or a bad state, which may change with each
// packet. With mean and length, a bad link loses every packet and a good link none. Alternatively give the
// probabilities of netem's gemodel: p and r, optionally h and k.
type BurstSpec struct {
	// Mean is the share of packets that are lost in bursts, over a long time.
	Mean *unit.Fraction `yaml:"mean" json:"mean,omitempty"`
	// Length is the mean number of consecutive lost packets. Independent losses have a length of about 1.
	Length *float64 `yaml:"length" json:"length,omitempty" jsonschema:"minimum=1"`
	// P is the probability, per packet, that a good link becomes bad.
	P *unit.Fraction `yaml:"p" json:"p,omitempty"`
	// R is the probability, per packet, that a bad link becomes good.
	R *unit.Fraction `yaml:"r" json:"r,omitempty"`
	// H is the share of packets that a bad link delivers. netem's 1-h is the share that it loses.
	H *unit.Fraction `yaml:"h" json:"h,omitempty" jsonschema:"default=0%"`
	// K is the share of packets that a good link delivers. netem's 1-k is the share that it loses.
	K *unit.Fraction `yaml:"k" json:"k,omitempty" jsonschema:"default=100%"`
}

var _ strict.Decoder = (*BurstSpec)(nil)

func (BurstSpec) Alternatives() [][]string { return [][]string{{"mean", "p"}} }

// DecodeNode implements strict.Decoder, because the keys depend on each other.
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
		fail(keys, "the share of losses is missing")
	case s.Mean != nil && s.Length == nil:
		fail(keys, "the length of bursts is missing")
	case s.P != nil && s.R == nil:
		fail(keys, "r, the probability that a burst ends, is missing")
	case s.Mean != nil && float64(*s.Mean) > *s.Length/(1+*s.Length):
		fail(fmt.Sprintf("give a mean of %.3g%% or less, or longer bursts", 100**s.Length/(1+*s.Length)),
			"bursts of %g packets, with one packet between them that arrives, lose less than %v", *s.Length, *s.Mean)
	}
}

// model returns the probabilities of the model. For mean m and length l: r = 1/l and m = p/(p+r).
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

// TCPSpec sets kernel parameters of TCP on all nodes. The keys are those of Linux without the prefix net.ipv4.tcp_. The
// kernel's ip-sysctl page documents them.
type TCPSpec struct {
	// CongestionControl names an algorithm, such as cubic, bbr or reno. The kernel of every machine must support it.
	CongestionControl *string `yaml:"congestion_control" json:"congestion_control,omitempty" jsonschema:"example=cubic,example=bbr,default=cubic"`
	// Rmem is the minimum, initial and maximum receive buffer of a connection, in bytes.
	Rmem *string `yaml:"rmem" json:"rmem,omitempty" jsonschema:"default=4096 131072 67108864"`
	// Wmem is the minimum, initial and maximum send buffer of a connection, in bytes.
	Wmem *string `yaml:"wmem" json:"wmem,omitempty" jsonschema:"default=4096 65536 67108864"`
	// SlowStartAfterIdle resets the congestion window of an idle connection.
	SlowStartAfterIdle *bool `yaml:"slow_start_after_idle" json:"slow_start_after_idle,omitempty" jsonschema:"default=true"`
	// ECN is 0 to disable explicit congestion notification, 1 to request it, 2 to accept requests for it.
	ECN *int `yaml:"ecn" json:"ecn,omitempty" jsonschema:"minimum=0,maximum=2,default=2"`
}

// validCongestionControl matches names shorter than the kernel's TCP_CA_NAME_MAX, 16.
var validCongestionControl = regexp.MustCompile(`^[a-z][a-z0-9_]{0,14}$`)

func (b *builder) addTCP() {
	s := b.spec.Defaults.TCP
	given := map[string]string{}
	if c := s.CongestionControl; c != nil {
		given["congestion_control"] = *c
		if !validCongestionControl.MatchString(*c) {
			b.fail("defaults.tcp.congestion_control", fmt.Sprintf("invalid congestion control name %q", *c),
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

// addBuffer adds the three sizes of a buffer in the kernel's format.
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
		b.fail("defaults.tcp."+name, fmt.Sprintf("%q is not three ascending sizes in bytes below 2 GiB", *text),
			"write the minimum, initial and maximum size, such as 4096 131072 6291456")
	}
}
