package command

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const big1, big2 = "123456789012345678901234567890", "123456789012345678901234567891"

// check evaluates a comparison of a field with a value as a database does: normalized, encoded and decoded.
func check(t *testing.T, field string, is Condition, value string) string {
	t.Helper()
	given := Transaction{
		Checks: []Check{{Table: "t", Key: "k", Is: is, Field: "f", Value: json.RawMessage(value)}},
		Writes: []Write{{Do: Delete, Table: "t", Key: "k"}},
	}
	if err := given.Normalize(); err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(given.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	return Evaluate(&decoded, 9, tables{"t": {"k": {3, []byte(`{"f":` + field + `}`)}}}).Code
}

func TestNumbersAreComparedExactly(t *testing.T) {
	for _, c := range []struct {
		field string
		is    Condition
		value string
		holds bool
	}{
		{big1, Equal, big2, false},
		{big1, Equal, big1, true},
		{big1, NotEqual, big2, true},
		{big1, Less, big2, true},
		{big2, LessOrEqual, big1, false},
		{"-" + big1, Greater, "-" + big2, true},
		{"9223372036854775807", Equal, "9223372036854775808", false},
		{"9223372036854775807", Less, "9223372036854775808", true},
		{"9007199254740993", Equal, "9007199254740992.0", false},
		{"18446744073709551615", GreaterOrEqual, "18446744073709551616", false},
		{"0.1", Equal, "0.1000000000000000055511151231257827", false},
		{"0.10", Equal, "1e-1", true},
		{"1.0000000000000000001", Equal, "1", false},
		{"10", Equal, "1E+1", true},
		{"100e-2", Equal, "1.000", true},
		{"0", Equal, "-0.0e7", true},
		{"-0", Equal, "0", true},
		{"1e400", Greater, "1e399", true},
		{"1e400", Equal, "1e401", false},
		{"1e99999999999999999999", Greater, "5", true},
		{"-1e99999999999999999999", Less, "-5", true},
		{"1e-99999999999999999999", Less, "0.1", true},
		{"1e-99999999999999999999", Greater, "0", true},
		{"0e99999999999999999999", Equal, "0", true},
		{`"` + big1 + `"`, Equal, big1, false},
	} {
		want := CheckFailed
		if c.holds {
			want = OK
		}
		if got := check(t, c.field, c.is, c.value); got != want {
			t.Errorf("%s %s %s: %s, want %s", c.field, c.is, c.value, got, want)
		}
	}
}

// TestNumbersCompareAsRationals compares random decimals and checks the result against rational arithmetic.
func TestNumbersCompareAsRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() string {
		text := strconv.Itoa(r.IntN(3))
		if text != "0" || r.IntN(2) == 0 {
			text += strings.Repeat("0", r.IntN(20)) + strconv.Itoa(r.IntN(3))
			text = strings.TrimLeft(text, "0")
		}
		if text == "" {
			text = "0"
		}
		if r.IntN(2) == 0 {
			text += "." + strings.Repeat("0", r.IntN(20)) + strconv.Itoa(r.IntN(30))
		}
		if r.IntN(2) == 0 {
			text += fmt.Sprintf("e%+d", r.IntN(41)-20)
		}
		if r.IntN(2) == 0 {
			text = "-" + text
		}
		return text
	}
	for range 20000 {
		a, b := number(), number()
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		if !okX || !okY || !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
			t.Fatalf("%s or %s is not a number", a, b)
		}
		if got, want := compareNumbers([]byte(a), []byte(b)), x.Cmp(y); got != want {
			t.Fatalf("%s against %s: %d, want %d", a, b, got, want)
		}
	}
}

func TestExponentsOutOfBoundsAreRefused(t *testing.T) {
	given := Transaction{
		Checks: []Check{{Table: "t", Key: "k", Is: Equal, Field: "f", Value: json.RawMessage("1e99999999999999999999")}},
		Writes: []Write{{Do: Delete, Table: "t", Key: "k"}},
	}
	if err := given.Normalize(); err == nil || !strings.Contains(err.Error(), "exponent") {
		t.Error(err)
	}
}

// The code of a check never changes: an entry does the same wherever it is applied.
func TestCodeOfChecks(t *testing.T) {
	entry := func(code string) []byte {
		return []byte("\x01\x00\x01" + code + "\x01t\x01k\x00\x01f\x1e" + big2 + "\x01\x03\x01t\x01k\x00")
	}
	s := tables{"t": {"k": {3, []byte(`{"f":` + big1 + `}`)}}}
	decoded, err := Decode(entry("\x03"))
	if err != nil {
		t.Fatal(err)
	}
	if got := Evaluate(&decoded, 9, s).Code; got != CheckFailed {
		t.Errorf("%s, want %s", got, CheckFailed)
	}
	if diff := cmp.Diff(entry("\x03"), decoded.Append(nil)); diff != "" {
		t.Error(diff)
	}
	if _, err := Decode(entry("\x09")); err == nil {
		t.Error("an unknown check was decoded")
	}
}
