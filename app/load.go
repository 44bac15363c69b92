package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Load reads the configuration of a mode: flags (those that were given, by name without dashes) win over the environment (as os.Environ has it), that wins over
// the YAML file which either of them names, and that wins over the defaults. Its error lists everything that is wrong, one thing a line.
func Load(mode Mode, flags map[string]string, environ []string) (*Config, error) {
	c := &Config{Mode: mode, sources: map[string]string{}}
	env, problems := environment(environ)
	path := env[envPrefix+"CONFIG"]
	if given, ok := flags["config"]; ok {
		path = given
	}
	file := &yamlFile{values: map[string]yamlValue{}}
	if path != "" {
		var err error
		if file, err = readFile(path); err != nil {
			return nil, err
		}
		problems = append(problems, file.problems...)
	}
	for _, s := range settings() {
		if s.modes&mode == 0 {
			continue // one file, or one environment, may serve both modes
		}
		given, source := s.def, "default"
		if v, ok := file.values[s.key]; ok {
			given, source = v.text, v.source
		}
		if v, ok := env[s.env()]; ok {
			given, source = v, s.env()
		}
		if v, ok := flags[s.flag()]; ok {
			given, source = v, "--"+s.flag()
		}
		c.sources[s.key] = source
		if err := s.value(c).set(strings.TrimSpace(given)); err != nil {
			problems = append(problems, fmt.Errorf("%s, given by %s: %w", s.names(), source, err))
		}
	}
	c.Chains, c.Namespaces, c.listsChains = file.chains, file.namespaces, len(file.chains) > 0
	problems = append(problems, c.checkSingle()...)
	c.settle()
	if len(problems) == 0 {
		problems = c.check()
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return c, nil
}

// ownVariables are names in the environment that are not settings of the service: that of its clients, those of our tests and tools, and those that Kubernetes makes for a service called pactwire.
var ownVariables = []string{"URL", "TEST_", "TOOLS_", "SERVICE_HOST", "SERVICE_PORT", "PORT"}

// environment picks our variables. One that is set but empty counts as not set.
func environment(environ []string) (map[string]string, []error) {
	names := []string{envPrefix + "CONFIG"}
	for _, s := range settings() {
		names = append(names, s.env())
	}
	found, problems := map[string]string{}, []error(nil)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		switch {
		case !ours || value == "":
		case slices.Contains(names, name):
			found[name] = value
		case !slices.ContainsFunc(ownVariables, func(own string) bool { return strings.HasPrefix(rest, own) }):
			problems = append(problems, unknown("environment variable "+name, name, names))
		}
	}
	return found, problems
}

// LoadDatabaseURL reads the one setting that `migrate` needs, from the same places as Load.
func LoadDatabaseURL(flags map[string]string, environ []string) (string, error) {
	const key = "database-url"
	env, problems := environment(environ)
	path := env[envPrefix+"CONFIG"]
	if given, ok := flags["config"]; ok {
		path = given
	}
	c := &Config{Mode: ModeServe}
	if path != "" {
		file, err := readFile(path)
		if err != nil {
			return "", err
		}
		problems = append(problems, file.problems...)
		c.DatabaseURL = file.values[key].text
	}
	c.DatabaseURL = cmp.Or(flags[key], env[envPrefix+"DATABASE_URL"], c.DatabaseURL)
	k := &checker{c: c}
	k.database()
	if err := errors.Join(append(problems, k.problems...)...); err != nil {
		return "", err
	}
	return c.DatabaseURL, nil
}
