package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// FindNulls are the places of a JSON document that hold null: types of the front end, which come
// from those of Go, say that a list is never that, and neither is anything else.
func FindNulls(document []byte) ([]string, error) {
	var v any
	if err := json.NewDecoder(bytes.NewReader(document)).Decode(&v); err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	places := findNulls(v, "")
	slices.Sort(places)
	return places, nil
}

func findNulls(v any, place string) (places []string) {
	switch x := v.(type) {
	case nil:
		return []string{place}
	case []any:
		for i, item := range x {
			places = append(places, findNulls(item, fmt.Sprintf("%s[%d]", place, i))...)
		}
	case map[string]any:
		for name, item := range x {
			places = append(places, findNulls(item, place+"."+name)...)
		}
	}
	return places
}
