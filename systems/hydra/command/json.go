package command

import (
	"bytes"
	"encoding/json"
)

// JSON is a value as JSON, in which texts and rows stand as they are: package json would write
// each <, > and & of theirs as six bytes, for the sake of web pages, and make of a row that was
// accepted one that is too large.
func JSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
