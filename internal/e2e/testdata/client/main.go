// A program as an application's developer writes it, against two packages that `pactwire client` has written. It stands in testdata because they are
// missing until the test has written them.
package main

import (
	"app/storage"
	"app/zoo"
	"context"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if err := store(ctx); err != nil {
		return fmt.Errorf("simple storage: %w", err)
	}
	if err := visit(ctx); err != nil {
		return fmt.Errorf("zoo: %w", err)
	}
	return nil
}

func store(ctx context.Context) error {
	client, err := storage.NewClientWithResponses(storage.ServiceURL)
	if err != nil {
		return err
	}
	wait := true
	set, err := client.InvokeSetWithResponse(ctx, &storage.InvokeSetParams{Confirm: &wait}, storage.InvokeSetRequest{
		Input: storage.SetInput{NewValue: "12345678901234567890123456789"},
	})
	if err != nil {
		return err
	}
	if set.JSON200 == nil || set.JSON200.Status != "Succeeded" {
		return fmt.Errorf("set: %s %s", set.Status(), set.Body)
	}
	get, err := client.QueryGetWithResponse(ctx, storage.QueryGetRequest{})
	if err != nil {
		return err
	}
	if get.JSON200 == nil {
		return fmt.Errorf("get: %s %s", get.Status(), get.Body)
	}
	fmt.Println("stored", get.JSON200.Output)
	oldest := "oldest"
	listener, err := client.CreateListenerChangedWithResponse(ctx, storage.LocatedEventListenerInput{Options: &storage.ListenerOptions{FirstEvent: &oldest}})
	if err != nil {
		return err
	}
	if listener.JSON200 == nil {
		return fmt.Errorf("listen: %s %s", listener.Status(), listener.Body)
	}
	fmt.Println("listening to", listener.JSON200.Event.Name)
	return nil
}

// visit uses an API without a location: each request brings one.
func visit(ctx context.Context) error {
	client, err := zoo.NewClientWithResponses(zoo.ServiceURL)
	if err != nil {
		return err
	}
	location := zoo.Location{Address: os.Getenv("ZOO")}
	point := zoo.Point{X: "-1", Y: strings.Repeat("9", 70)}
	echo, err := client.QueryEchoPointWithResponse(ctx, zoo.QueryEchoPointRequest{Location: location, Input: zoo.EchoPointInput{At: point}})
	if err != nil {
		return err
	}
	if echo.JSON200 == nil || echo.JSON200.Output != point {
		return fmt.Errorf("echoPoint: %s %s", echo.Status(), echo.Body)
	}
	fmt.Println("echoed", echo.JSON200.Output.X)
	one := zoo.QueryOver1Request{Location: location, Input: zoo.Over1Input{Arg0: "1"}}
	over, err := client.QueryOver1WithResponse(ctx, one)
	if err != nil {
		return err
	}
	if over.JSON200 == nil {
		return fmt.Errorf("over_1: %s %s", over.Status(), over.Body)
	}
	fmt.Println("overload", over.JSON200.Output)
	wei, wait := "18446744073709551617", true
	paid, err := client.InvokePayWithResponse(ctx, &zoo.InvokePayParams{Confirm: &wait}, zoo.InvokePayRequest{
		Location: location, Input: zoo.PayInput{Data: "0x01"}, Options: &zoo.PayableInvokeOptions{Value: &wei},
	})
	if err != nil {
		return err
	}
	if paid.JSON200 == nil || paid.JSON200.Status != "Succeeded" {
		return fmt.Errorf("pay: %s %s", paid.Status(), paid.Body)
	}
	fmt.Println("paid", wei)
	no, err := client.QueryFailDeniedWithResponse(ctx, zoo.QueryFailDeniedRequest{Location: location, Input: zoo.FailDeniedInput{Needed: "7", Why: "closed"}})
	if err != nil {
		return err
	}
	problem := no.ApplicationproblemJSON4XX
	if problem == nil || problem.Revert == nil || problem.Revert.Name == nil {
		return fmt.Errorf("failDenied: %s %s", no.Status(), no.Body)
	}
	fmt.Println("reverted with", *problem.Revert.Name)
	return nil
}
