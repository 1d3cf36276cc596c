package docgen

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"skerry/internal/lab/overlay"
	"skerry/internal/lab/overlay/kinds"
	"skerry/internal/topology"
)

// overlayOrigin is where the table of overlays comes from.
const overlayOrigin = "the registry in internal/lab/overlay/kinds"

// overlayTable is the table of docs/routing.md.
func overlayTable() string {
	var b strings.Builder
	b.WriteString("| `overlay:` | how packets go | what it notices | installed by |\n|---|---|---|---|\n" +
		"| `direct` (default) | over the first link of a pair; nodes forward for nobody | nothing | |\n")
	for _, a := range kinds.Registry() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | `skerry install %s` |\n", a.Name, a.Docs.Takes, a.Docs.Notices, a.Recipe.Name)
	}
	return b.String()
}

// addOverlays gives the overlay of a topology the kinds that there are, and each kind's
// options under its name.
func addOverlays(s *jsonschema.Schema, r *jsonschema.Reflector) {
	spec := s.Definitions[reflect.TypeFor[topology.OverlaySpec]().Name()]
	kind, _ := spec.Properties.Get("kind")
	spec.Properties.Delete("Settings") // the keys that the kinds have
	kind.Enum = []any{topology.Direct}
	registry := kinds.Registry()
	uses := make([]string, len(registry))
	for i, a := range registry {
		kind.Enum = append(kind.Enum, a.Name)
		uses[i] = a.Name + " " + a.Docs.For
		addOptions(s, r, spec, a)
	}
	first, _, _ := strings.Cut(kind.Description, ", or ")
	kind.Description = first + ", " + strings.Join(uses[:len(uses)-1], ", ") + ", or " + uses[len(uses)-1] + "."
}

// addOptions gives the overlay of a topology the key of one of the kinds.
func addOptions(s *jsonschema.Schema, r *jsonschema.Reflector, spec *jsonschema.Schema, a overlay.About) {
	t := reflect.TypeOf(a.Options()).Elem()
	of := r.ReflectFromType(t)
	of.Definitions, of.Version = nil, ""
	rename(of, t)
	title := strings.ToUpper(a.Name[:1]) + a.Name[1:]
	of.Description = title + " " + a.Docs.Tunes
	s.Definitions[title+"Spec"] = of
	short, _, _ := strings.Cut(a.Docs.Tunes, ".")
	spec.Properties.Set(a.Name, &jsonschema.Schema{Ref: "#/$defs/" + title + "Spec", Description: a.Name + " " + short + "."})
}
