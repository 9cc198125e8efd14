package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

func runLoad(args []string) error {
	if len(args) == 0 {
		return usagef("usage: cluster load ARCHIVE... (tar files as written by `docker save`, `buildah push docker-archive:` or `oci-archive:`)")
	}
	c, err := existing()
	if err != nil {
		return err
	}
	if c.Mode == modeKwok {
		say("fake nodes (kwok) run no images: nothing to load")
		return nil
	}
	lock, err := lockCluster(c.state)
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, node := range c.nodes() {
		if _, alive := c.pid("containerd-" + node); !alive {
			return fmt.Errorf("containerd of node %s is not running: run `cluster up` to repair the cluster", node)
		}
	}
	for _, archive := range args {
		began := time.Now()
		imported, err := c.loadEverywhere(archive)
		if err != nil {
			return err
		}
		if imported == 0 {
			say("%s: every node has it already", archive)
			continue
		}
		say("%s: imported on %d of %d nodes in %.1f s", archive, imported, c.Count, time.Since(began).Seconds())
	}
	return nil
}

// loadEverywhere imports an archive on all nodes at once and counts those that
// did not have it yet.
func (c *config) loadEverywhere(archive string) (imported int, err error) {
	archive, err = filepath.Abs(archive)
	if err != nil {
		return 0, err
	}
	print, err := fingerprint(archive)
	if err != nil {
		return 0, err
	}
	var group sync.WaitGroup
	var guard sync.Mutex
	var failures []error
	for _, node := range c.nodes() {
		group.Add(1)
		go func() {
			defer group.Done()
			did, err := c.loadOn(node, archive, print)
			guard.Lock()
			defer guard.Unlock()
			if did {
				imported++
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("load %s on node %s: %w", archive, node, err))
			}
		}()
	}
	group.Wait()
	return imported, errors.Join(failures...)
}

// loadOn imports the archive unless this node did before and still has all the
// images under the same digests: a tag may have moved since.
func (c *config) loadOn(node, archive, print string) (bool, error) {
	record := c.path("nodes", node, "loaded", print)
	if text, err := os.ReadFile(record); err == nil {
		present, err := c.images(node)
		if err != nil {
			return false, err
		}
		if stillThere(string(text), present) {
			return false, nil
		}
	}
	said, err := c.ctr(node, "images", "import", "--snapshotter", "overlayfs", archive)
	if err != nil {
		return false, err
	}
	present, err := c.images(node)
	if err != nil {
		return false, err
	}
	var names []string
	for name, digest := range present {
		// ctr prints "unpacking NAME (sha256:...)...done" for each image.
		if strings.Contains(said, "unpacking "+name+" ") {
			names = append(names, name+" "+digest)
		}
	}
	if len(names) == 0 {
		return true, nil // nothing to recognise it by: import again next time
	}
	return true, writeFile(record, []byte(strings.Join(names, "\n")+"\n"), 0o644)
}

func stillThere(record string, present map[string]string) bool {
	for _, line := range strings.Split(strings.TrimSpace(record), "\n") {
		name, digest, _ := strings.Cut(line, " ")
		if present[name] != digest {
			return false
		}
	}
	return true
}

func (c *config) ctr(node string, args ...string) (string, error) {
	return output("ctr", append([]string{"--address", c.socket(node), "--namespace", "k8s.io"}, args...)...)
}

// images maps the names of a node's images to their digests.
func (c *config) images(node string) (map[string]string, error) {
	text, err := c.ctr(node, "images", "ls")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && strings.HasPrefix(fields[2], "sha256:") {
			found[fields[0]] = fields[2]
		}
	}
	return found, nil
}

// fingerprint identifies an archive's images without reading its layers: the
// index (OCI) or the manifest and configurations (docker), which name the
// layers by digest.
func fingerprint(archive string) (string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer file.Close()
	reader, err := maybeGzip(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", archive, err)
	}
	hash := sha256.New()
	recognised := false
	for tarball := tar.NewReader(reader); ; {
		header, err := tarball.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", fmt.Errorf("%s is not an image archive (a tar file, or a gzipped one): %w", archive, err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		isIndex := name == "index.json" || name == "manifest.json"
		recognised = recognised || isIndex
		if !isIndex && (!strings.HasSuffix(name, ".json") || header.Size > 1<<20) {
			continue
		}
		content, err := io.ReadAll(tarball)
		if err != nil {
			return "", err
		}
		if !json.Valid(content) {
			return "", fmt.Errorf("%s: %s is not JSON: write the archive again", archive, name)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	if !recognised {
		return "", fmt.Errorf("%s holds no index.json or manifest.json: it is not an OCI or docker image archive", archive)
	}
	return hex.EncodeToString(hash.Sum(nil)[:12]), nil
}

// maybeGzip hands a plain tar through as a file, which the tar reader can seek
// in to skip the layers.
func maybeGzip(file *os.File) (io.Reader, error) {
	magic, err := bufio.NewReader(file).Peek(2)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return gzip.NewReader(file)
	}
	return file, nil
}
