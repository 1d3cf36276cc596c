package topology

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

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
	pick(&s.CongestionControl, over.CongestionControl)
	pick(&s.Rmem, over.Rmem)
	pick(&s.Wmem, over.Wmem)
	pick(&s.SlowStartAfterIdle, over.SlowStartAfterIdle)
	pick(&s.ECN, over.ECN)
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
