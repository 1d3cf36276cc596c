package ycsb

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxBuckets bounds a histogram's file against a stray bucket number.
const maxBuckets = 1 << 20

// readLengths reads YCSB's histogram file.
func readLengths(name string) (Length, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Length{}, err
	}
	l, err := parseLengths(string(text))
	if err != nil {
		return Length{}, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// parseLengths reads "BlockSize<tab>n" and lines of "bucket<tab>weight".
func parseLengths(text string) (Length, error) {
	l := Length{Distribution: Histogram}
	var total int64
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		n, err := strconv.ParseInt(value, 10, 32)
		if !ok || err != nil || n < 0 {
			return Length{}, fmt.Errorf("line %d: not two columns with a tab between", i+1)
		}
		if i == 0 {
			if name != "BlockSize" || n == 0 {
				return Length{}, errors.New("line 1: BlockSize and a number above 0 belong here")
			}
			l.Block = n
			continue
		}
		bucket, err := strconv.Atoi(name)
		if err != nil || bucket < 0 || bucket >= maxBuckets {
			return Length{}, fmt.Errorf("line %d: bucket %q is not between 0 and %d", i+1, name, maxBuckets-1)
		}
		for len(l.Buckets) <= bucket {
			l.Buckets = append(l.Buckets, 0)
		}
		l.Buckets[bucket] += n
		total += n
	}
	if total == 0 {
		return Length{}, errors.New("all weights are 0")
	}
	l.Min, l.Max = l.Block, l.Block*int64(len(l.Buckets))
	return l, nil
}
