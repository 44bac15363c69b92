package contract

import "strconv"

// AssignPathnames gives every method, event and error its pathname: its name, and for later overloads of a name name_1,
// name_2 and so on in order, passing over what is a real name of another one. Pathnames that were there are replaced,
// so the same interface gets the same paths on every member of the network.
func (i *Interface) AssignPathnames() {
	assignPathnames(len(i.Methods), func(n int) (string, *string) { return i.Methods[n].Name, &i.Methods[n].Pathname })
	assignPathnames(len(i.Events), func(n int) (string, *string) { return i.Events[n].Name, &i.Events[n].Pathname })
	assignPathnames(len(i.Errors), func(n int) (string, *string) { return i.Errors[n].Name, &i.Errors[n].Pathname })
}

func assignPathnames(count int, at func(int) (name string, pathname *string)) {
	taken := make(map[string]bool, count)
	for n := range count {
		name, _ := at(n)
		taken[name] = true
	}
	next := make(map[string]int, count) // the number that a name's next overload tries first
	for n := range count {
		name, pathname := at(n)
		number, again := next[name]
		if !again {
			next[name] = 1
			*pathname = name
			continue
		}
		path := name + "_" + strconv.Itoa(number)
		for taken[path] {
			number++
			path = name + "_" + strconv.Itoa(number)
		}
		taken[path] = true
		next[name] = number + 1
		*pathname = path
	}
}
