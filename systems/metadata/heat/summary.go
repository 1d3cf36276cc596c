package heat

import "strings"

// summarySize is how many directories a summary has.
const summarySize = 128

// summary are the hottest directories of a level, by Space-Saving (Metwally, Agrawal and
// El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT
// 2005), a level at a time as Mitzenmacher, Steinke and Thaler have it ("Hierarchical
// Heavy Hitters with the Space Saving Algorithm", ALENEX 2012): a new one takes the place
// of the least, whose weight it might have had. One that has more than 1/kept of the whole
// weight is there.
type summary struct {
	hottest []counter
	at      map[string]int // of hottest, by path
}

type counter struct {
	path     string
	weight   float64 // at most
	maxError float64 // of the weight: that of the one before, which may not be this one's
}

func (s *summary) add(path string, weight float64) {
	if i, ok := s.at[path]; ok {
		s.hottest[i].weight += weight
		return
	}
	path = strings.Clone(path) // it may be a part of a long request
	if len(s.hottest) < summarySize {
		if s.at == nil {
			s.at = make(map[string]int, summarySize)
		}
		s.at[path] = len(s.hottest)
		s.hottest = append(s.hottest, counter{path: path, weight: weight})
		return
	}
	least := 0
	for i := range s.hottest {
		if s.hottest[i].weight < s.hottest[least].weight {
			least = i
		}
	}
	delete(s.at, s.hottest[least].path)
	s.at[path] = least
	doubt := s.hottest[least].weight
	s.hottest[least] = counter{path: path, weight: doubt + weight, maxError: doubt}
}

func (s *summary) divide(by float64) {
	for i := range s.hottest {
		s.hottest[i].weight /= by
		s.hottest[i].maxError /= by
	}
}
