// Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt.
// Without shed it does the same work from the start.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	path, unit, units, step := os.Getenv("SHED_PROGRESS_FILE"), 0, 40, 1.0
	fmt.Sscan(os.Getenv("STEP"), &step)
	checkpoint, _ := os.ReadFile(os.Getenv("SHED_RESUME_FILE") + ".checkpoint") // absent: from the start
	fmt.Sscan(string(checkpoint), &unit)
	fmt.Println("begins at unit", unit)
	for ; unit < units; unit++ {
		time.Sleep(time.Duration(step * float64(time.Second))) // the work on one unit
		report := fmt.Sprintf(`{"progress":"%d/%d","checkpoint":"%d"}`, unit+1, units, unit+1)
		if path != "" && (os.WriteFile(path+".new", []byte(report), 0o644) != nil || os.Rename(path+".new", path) != nil) {
			os.Exit(1)
		}
	}
}
