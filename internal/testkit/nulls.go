package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// FindNulls returns the paths of null values in a JSON document. The front end's types, which are generated from Go types,
// do not allow null.
func FindNulls(document []byte) ([]string, error) {
	var v any
	if err := json.NewDecoder(bytes.NewReader(document)).Decode(&v); err != nil {
		return nil, fmt.Errorf("decoding the JSON document: %w", err)
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
