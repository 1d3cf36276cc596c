package registers

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// say is a test that only records messages.
type say struct {
	testing.TB
	heard []string
}

func (s *say) Helper()                        {}
func (s *say) Errorf(format string, a ...any) { s.heard = append(s.heard, fmt.Sprintf(format, a...)) }
func (s *say) Logf(string, ...any)            {}

func TestCheck(t *testing.T) {
	op := func(who int, call, ret int64, in Operation, out outcome) porcupine.Operation {
		return porcupine.Operation{ClientId: who, Call: call, Return: ret, Input: in, Output: out}
	}
	writes := func(who int, call, ret int64, key string, value int) porcupine.Operation {
		return op(who, call, ret, Operation{Key: key, Write: true, Value: value}, outcome{})
	}
	reads := func(who int, call, ret int64, key string, value int) porcupine.Operation {
		return op(who, call, ret, Operation{Key: key}, outcome{value: value})
	}
	doubt := op(0, 1, math.MaxInt64, Operation{Key: "a", Write: true, Value: 7}, outcome{doubt: true})
	failed := op(0, 1, 2, Operation{Key: "a", Write: true, Value: 7}, outcome{failed: true})
	for name, c := range map[string]struct {
		history []porcupine.Operation
		wrong   string // register with a violation
	}{
		"nothing":                         {nil, ""},
		"read the written value":          {[]porcupine.Operation{writes(0, 1, 2, "a", 7), reads(1, 3, 4, "a", 7)}, ""},
		"no value before the first write": {[]porcupine.Operation{reads(1, 1, 2, "a", 0), writes(0, 3, 4, "a", 7)}, ""},
		"either value during the write":   {[]porcupine.Operation{writes(0, 1, 9, "a", 7), reads(1, 2, 3, "a", 0), reads(1, 4, 5, "a", 7)}, ""},
		"a stale read":                    {[]porcupine.Operation{writes(0, 1, 2, "a", 7), writes(0, 3, 4, "a", 8), reads(1, 5, 6, "a", 7)}, "a"},
		"a lost write":                    {[]porcupine.Operation{writes(0, 1, 2, "b", 7), reads(1, 3, 4, "b", 0), reads(1, 3, 4, "a", 0)}, "b"},
		"a value that no client wrote":    {[]porcupine.Operation{reads(1, 3, 4, "a", 3)}, "a"},
		"back again":                      {[]porcupine.Operation{writes(0, 1, 9, "a", 7), reads(1, 2, 3, "a", 7), reads(1, 4, 5, "a", 0)}, "a"},
		"registers are independent":       {[]porcupine.Operation{writes(0, 1, 2, "a", 7), reads(1, 3, 4, "b", 0)}, ""},
		"in doubt, seen late":             {[]porcupine.Operation{doubt, reads(1, 5, 6, "a", 0), reads(1, 7, 8, "a", 7)}, ""},
		"in doubt, never seen":            {[]porcupine.Operation{doubt, reads(1, 5, 6, "a", 0)}, ""},
		"in doubt, seen and lost":         {[]porcupine.Operation{doubt, reads(1, 5, 6, "a", 7), reads(1, 7, 8, "a", 0)}, "a"},
		"a failed write is not visible":   {[]porcupine.Operation{failed, reads(1, 5, 6, "a", 0)}, ""},
		"a failed write is visible":       {[]porcupine.Operation{failed, reads(1, 5, 6, "a", 7)}, "a"},
	} {
		var s say
		(&History{all: c.history}).Check(&s, time.Minute)
		if len(s.heard) > 1 || (len(s.heard) == 1) != (c.wrong != "") || c.wrong != "" && !strings.HasPrefix(s.heard[0], c.wrong+" is not") {
			t.Errorf("%s: %q", name, s.heard)
		}
	}
}
