package record

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// docs/run-directory.md and docs/run-summary.md describe every field of a run directory.
func TestEveryFieldIsDocumented(t *testing.T) {
	page := ""
	for _, name := range []string{"run-directory.md", "run-summary.md"} {
		b, err := os.ReadFile("../../docs/" + name)
		noError(t, err)
		page += string(b)
	}
	for _, v := range []any{Run{}, Summary{}, Second{}, NodeSecond{}, DirectionSecond{}, Event{}, Notes{}} {
		for name := range fields(reflect.TypeOf(v)) {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("%T: field %s is neither in docs/run-directory.md nor in docs/run-summary.md", v, name)
			}
		}
	}
	for _, name := range []string{runFile, summaryFile, trialFile, timelineFile, nodesFile, directionsFile, eventsFile, trafficFile,
		topologyFile, ycsbFile, logsDir, partial, notesFile, RunSchema, SummarySchema, NotesSchema} {
		if !strings.Contains(page, name) {
			t.Errorf("%s is not in docs/run-directory.md", name)
		}
	}
}

// fields collects the JSON names of a type and of all types in it.
func fields(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fields(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return names
		}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "schema" {
				names[name] = true
			}
			for n := range fields(t.Field(i).Type) {
				names[n] = true
			}
		}
	}
	return names
}
