package report

import (
	_ "embed"
	"html/template"
)

//go:embed style.css
var style string

// Style is the style sheet of pages without scripts; it colours the plots of package svg.
func Style() template.CSS { return template.CSS(style) }
