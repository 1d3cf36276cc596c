package install

// Wanted says which targets of the Makefile install what a recipe describes. A target also
// requires it of its tests (SKERRY_REQUIRE), so that a skip cannot hide rot; tests of what it
// does not want are left out of it, even where that is installed.
type Wanted int

// From the least wanted on.
const (
	// OnRequest is for who has it or builds it: make conformance tests it where it is there.
	OnRequest Wanted = iota
	// ByConformance is fetched by make conformance.
	ByConformance
	// BySlow is fetched by make slow, and by make conformance.
	BySlow
	// ByTests is fetched by make test, and by all others.
	ByTests
)

// Names returns the arguments of skerry install for all wanted recipes, in
// their order: the name for the first of a name's series, NAME@SERIES for the others.
func Names(recipes []Recipe, wanted func(Recipe) bool) []string {
	var names []string
	first := make(map[string]bool)
	for _, r := range recipes {
		name := r.Key()
		if !first[r.Name] {
			name = r.Name
		}
		first[r.Name] = true
		if wanted(r) {
			names = append(names, name)
		}
	}
	return names
}
