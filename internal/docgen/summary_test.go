package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skerry/docs"
)

// node is the supported subset of a JSON Schema; other keys are rejected.
type node struct {
	Ref         string          `json:"$ref"`
	Defs        map[string]node `json:"$defs"`
	Type        string          `json:"type"`
	Format      string          `json:"format"`
	Required    []string        `json:"required"`
	Properties  map[string]node `json:"properties"`
	Items       *node           `json:"items"`
	More        json.RawMessage `json:"additionalProperties"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Schema      string          `json:"$schema"`
	ID          string          `json:"$id"`
	Encoding    string          `json:"contentEncoding"`
}

func published(t *testing.T) node {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(docs.SummarySchema)))
	d.DisallowUnknownFields()
	var root node
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	return root
}

// wrong returns the positions at which a value violates a schema; every key must be known.
func (root node) wrong(n node, v any, at string) (all []string) {
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		n = root.Defs[name]
	}
	fail := func(format string, args ...any) { all = append(all, at+": "+fmt.Sprintf(format, args...)) }
	switch v := v.(type) {
	case map[string]any:
		for _, key := range n.Required {
			if _, ok := v[key]; !ok {
				fail("%s is missing", key)
			}
		}
		for key, value := range v {
			next, ok := n.Properties[key]
			if !ok && n.Properties != nil {
				fail("%s is not in the schema", key)
				continue
			}
			if !ok && len(n.More) > 0 && n.More[0] == '{' {
				if err := json.Unmarshal(n.More, &next); err != nil {
					fail("%v", err)
				}
			}
			all = append(all, root.wrong(next, value, at+"."+key)...)
		}
	case []any:
		for i, x := range v {
			if n.Items == nil {
				fail("is a list")
				break
			}
			all = append(all, root.wrong(*n.Items, x, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case float64:
		if n.Type != "" && n.Type != "number" && n.Type != "integer" || n.Type == "integer" && v != float64(int64(v)) {
			fail("%v is no %s", v, n.Type)
		}
	case string:
		if n.Type != "" && n.Type != "string" {
			fail("%q is not a %s", v, n.Type)
		}
	case bool:
		if n.Type != "" && n.Type != "boolean" {
			fail("%v is no %s", v, n.Type)
		}
	}
	return all
}

// The summary of a run conforms to the published schema.
func TestSummaryMatchesSchema(t *testing.T) {
	text, err := os.ReadFile("../report/webdata/testdata/two-distances/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	root := published(t)
	for _, w := range root.wrong(root, v, "summary") {
		t.Error(w)
	}
	v["trials"].([]any)[0].(map[string]any)["goodput_ops_s"] = "12 ops/s"
	delete(v, "planned")
	if got := root.wrong(root, v, "summary"); len(got) != 2 {
		t.Errorf("a text for a number and a missing field: %v", got)
	}
}

// unitless are numbers that have no unit: counts, shares and ordinals.
var unitless = regexp.MustCompile(`^(id|repetition|cluster_of|beside|planned|goodput_batches|retries|ok|failed|unknown|dropped|count|unresponsive_periods|emulator_drops|host_cores|waiting|keys|operations|overshoot_ops|dip_ops|dip_depth|availability|availability_time|measured|worst_bandwidth_error|t|moved|left|writes_refused|history_operations|sent|lost|packets|directions|of|times|total|in_effect|no_packet|superseded|unconfirmed|expected_operations|expected_inserts|[a-z_]*(share|writes|writes_in_doubt|copies|values|keys|replicas|records|repaired|stolen|reads|behind))$`)

// units are the suffixes of names of numbers; latencies have theirs in the name of their parent.
var units = regexp.MustCompile(`(_s|_ms|_us|_bytes|_bps|_ops_s|_cores|_cores_max_1s)$|^(bytes|cores|mean|p50|p95|p99|p999|max)$`)

func TestSummaryNumbersHaveUnits(t *testing.T) {
	root := published(t)
	for name, d := range root.Defs {
		for key, p := range d.Properties {
			if slices.Contains([]string{"number", "integer"}, p.Type) && !units.MatchString(key) && !unitless.MatchString(key) {
				t.Errorf("%s.%s: a number without a unit in its name", name, key)
			}
		}
	}
}
