package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// counts says how often each word occurs.
type counts map[string]int64

// The text is source code: PodSpec counts as pod and spec, HTTPServer as
// httpserver (where an acronym ends can't be seen without a dictionary).
var part = regexp.MustCompile(`\p{Lu}+[^\p{Lu}]*|[^\p{Lu}]+`)

// endings are rules of an English stemmer: watches, watching and watched all
// count as watch. Of each group the first rule that fits applies. Plain regular
// expressions, because an example should be easy to read and slow enough to watch.
var endings = [][]struct {
	ending *regexp.Regexp
	stem   string
}{
	{
		{regexp.MustCompile(`sses$`), "ss"},
		{regexp.MustCompile(`(\p{L}{2})ies$`), "${1}y"},
		{regexp.MustCompile(`(ch|sh|x|z)es$`), "${1}"},
		{regexp.MustCompile(`(\p{L}{2}[^su])s$`), "${1}"},
	},
	{
		{regexp.MustCompile(`(\p{L}{3})ing$`), "${1}"},
		{regexp.MustCompile(`(\p{L}{3})ed$`), "${1}"},
	},
}

// add counts the words of one line.
func (c counts) add(line []byte) {
	for _, w := range bytes.FieldsFunc(line, separates) {
		for _, p := range part.FindAll(w, -1) {
			c[stem(strings.ToLower(string(p)))]++
		}
	}
}

func separates(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r)
}

func stem(word string) string {
	if len(word) < 4 {
		return word // too short for any ending
	}
	for _, group := range endings {
		for _, rule := range group {
			if rule.ending.MatchString(word) {
				word = rule.ending.ReplaceAllString(word, rule.stem)
				break
			}
		}
	}
	return word
}

// write prints the words in alphabetical order, so that equal counts are equal bytes.
func (c counts) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, word := range slices.Sorted(func(yield func(string) bool) {
		for word := range c {
			if !yield(word) {
				return
			}
		}
	}) {
		fmt.Fprintf(out, "%s\t%d\n", word, c[word])
	}
	return out.Flush()
}

// read adds what write printed.
func (c counts) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		word, number, _ := strings.Cut(lines.Text(), "\t")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("not a count: %q", lines.Text())
		}
		c[word] += n
	}
	return lines.Err()
}

// eachLine calls visit for every line that begins in [start, end) of a file,
// with the offset after it, and returns that of the last. Lines that begin in a
// range belong to that range wherever they end: so the ranges of all tasks
// tile the text exactly, though their bounds fall anywhere.
func eachLine(path string, start, end int64, visit func(line []byte, next int64) error) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return start, err
	}
	defer file.Close()
	offset := start
	if start > 0 {
		offset-- // a line begins at start only if the byte before ends one
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return start, err
	}
	reader := bufio.NewReaderSize(file, 1<<16)
	for first := start > 0; offset < end; first = false {
		line, err := reader.ReadBytes('\n')
		offset += int64(len(line))
		if !first && len(line) > 0 {
			if err := visit(bytes.TrimSuffix(line, []byte{'\n'}), offset); err != nil {
				return offset, err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return offset, err
		}
	}
	return offset, nil
}
