package docgen

import (
	"strings"

	"github.com/invopop/jsonschema"

	"skerry/internal/record"
)

// SummarySchema is the JSON Schema of summary.json. Within a version fields are only added, so
// that it takes those that it does not know.
func SummarySchema(root string) ([]byte, error) {
	s, err := summary(root)
	if err != nil {
		return nil, err
	}
	return inJSON(s)
}

func summary(root string) (*jsonschema.Schema, error) {
	r, err := reflector(root, "record")
	if err != nil {
		return nil, err
	}
	r.FieldNameTag, r.RequiredFromJSONSchemaTags, r.Mapper, r.AllowAdditionalProperties = "json", false, nil, true
	s := r.Reflect(record.Summary{})
	s.Title = "Skerry summary"
	for _, d := range s.Definitions {
		d.Description = firstSentence(d.Description)
	}
	return s, nil
}

// firstSentence leaves what follows to the source.
func firstSentence(text string) string {
	if i := strings.Index(text, ". "); i > 0 {
		return text[:i+1]
	}
	return text
}
