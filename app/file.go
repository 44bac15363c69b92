package app

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the configuration file: aliases in YAML can grow without bound otherwise.
const maxFile = 1 << 20

// yamlFile is what the configuration file says.
type yamlFile struct {
	path       string
	values     map[string]yamlValue // by key
	chains     []ChainConfig
	namespaces []NamespaceConfig
	problems   []error
}

type yamlValue struct{ text, source string }

// readFile reads a configuration file. What is wrong with single keys stands in problems.
func readFile(path string) (*yamlFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read the configuration: %s is larger than %d bytes", path, maxFile)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("read the configuration: %s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	f := &yamlFile{path: path, values: map[string]yamlValue{}}
	if len(document.Content) == 0 {
		return f, nil // empty, or comments only
	}
	known := map[string]func(string, *yaml.Node){"chains": f.readChains, "namespaces": f.readNamespaces}
	for _, s := range settings() {
		known[s.key] = f.readValue
	}
	f.section("", document.Content[0], known)
	return f, nil
}

func (f *yamlFile) problem(n *yaml.Node, format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s: %w", f.at(n), fmt.Errorf(format, args...)))
}

func (f *yamlFile) at(n *yaml.Node) string { return fmt.Sprintf("%s, line %d", f.path, n.Line) }

// section reads a mapping whose keys are known, each with the function that takes its value. A key with a dot in it also has the section before the dot.
func (f *yamlFile) section(prefix string, n *yaml.Node, known map[string]func(key string, n *yaml.Node)) {
	n = plain(n)
	if n.Kind != yaml.MappingNode {
		f.problem(n, "%s must be a list of keys with values", cmp.Or(strings.TrimSuffix(prefix, "."), "the file"))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		key := prefix + name.Value
		if seen[key] {
			f.problem(name, "the key %s is there twice", key)
			continue
		}
		seen[key] = true
		switch {
		case known[key] != nil:
			known[key](key, value)
		case slices.ContainsFunc(keys(known), func(k string) bool { return strings.HasPrefix(k, key+".") }):
			f.section(key+".", value, known)
		default:
			f.problems = append(f.problems, unknown(fmt.Sprintf("%s: the key %s", f.at(name), key), key, keys(known)))
		}
	}
}

func (f *yamlFile) readValue(key string, n *yaml.Node) {
	if s, ok := f.scalars(key, n); ok {
		f.values[key] = yamlValue{strings.Join(s, ","), f.at(n)}
	}
}

// scalars takes one value, or a list of them.
func (f *yamlFile) scalars(key string, n *yaml.Node) ([]string, bool) {
	n = plain(n)
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, true
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, true
	case n.Kind == yaml.SequenceNode:
		var all []string
		for _, item := range n.Content {
			if item = plain(item); item.Kind != yaml.ScalarNode {
				f.problem(item, "%s must hold single values", key)
				return nil, false
			}
			all = append(all, item.Value)
		}
		return all, true
	}
	f.problem(n, "%s must be a single value", key)
	return nil, false
}

// into makes the function that reads a key's value by v.
func (f *yamlFile) into(v value) func(string, *yaml.Node) {
	return func(key string, n *yaml.Node) {
		s, ok := f.scalars(key, n)
		if !ok {
			return
		}
		if err := v.set(strings.Join(s, ",")); err != nil {
			f.problem(n, "%s: %w", key, err)
		}
	}
}

// each calls read for each entry of a list of mappings.
func (f *yamlFile) each(key string, n *yaml.Node, read func(*yaml.Node)) {
	n = plain(n)
	if n.Kind != yaml.SequenceNode {
		f.problem(n, "%s must be a list: each entry begins with a dash", key)
		return
	}
	for _, item := range n.Content {
		read(item)
	}
}

func (f *yamlFile) readChains(key string, n *yaml.Node) {
	f.each(key, n, func(item *yaml.Node) {
		var c ChainConfig
		f.section("", item, map[string]func(string, *yaml.Node){
			"name": f.into(text(&c.Name)), "rpc-urls": f.into(list(&c.RPCURLs)), "confirmations": f.into(optionalCount(&c.Confirmations)),
			"verify-blocks": f.into(optionalCount(&c.VerifyBlocks)),
			"pin-contract":  f.into(address(&c.PinContract)), "pin-block": f.into(count(&c.PinBlock)),
			"max-fee-per-gas": f.into(wei(&c.MaxFeePerGas)),
			"keys": func(key string, n *yaml.Node) {
				f.each(key, n, func(item *yaml.Node) {
					var k KeyConfig
					f.section("", item, map[string]func(string, *yaml.Node){
						"keystore": f.into(text(&k.Keystore)), "password-file": f.into(text(&k.PasswordFile)), "remote": f.into(text(&k.Remote)),
					})
					c.Keys = append(c.Keys, k)
				})
			},
		})
		f.chains = append(f.chains, c)
	})
}

func (f *yamlFile) readNamespaces(key string, n *yaml.Node) {
	f.each(key, n, func(item *yaml.Node) {
		var c NamespaceConfig
		f.section("", item, map[string]func(string, *yaml.Node){
			"name": f.into(text(&c.Name)), "chain": f.into(text(&c.Chain)),
			"default-key": f.into(address(&c.DefaultKey)), "network": f.into(text(&c.Network)),
			"retention.age": f.into(optionalDuration(&c.Retention.Age)), "retention.count": f.into(optionalCount(&c.Retention.Count)),
			"retention.force": f.into(optionalBoolean(&c.Retention.Force)),
			"shared-storage":  f.into(list(&c.SharedStorage)),
		})
		f.namespaces = append(f.namespaces, c)
	})
}

// plain follows an alias to what it stands for.
func plain(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func keys(m map[string]func(string, *yaml.Node)) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
