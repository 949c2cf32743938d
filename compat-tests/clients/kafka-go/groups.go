package main

import (
	"context"
	"errors"

	"github.com/segmentio/kafka-go"

	"odradek/serving"
)

func (l *library) ListGroups(ctx context.Context) ([]string, error) {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, group := range answer.Groups {
		names = append(names, group.GroupID)
	}
	return names, answer.Error
}

// DescribeGroup leaves out the protocol and the instances, which kafka-go does not tell.
func (l *library) DescribeGroup(ctx context.Context, group string) (serving.GroupDescription, error) {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return serving.GroupDescription{}, err
	}
	told := answer.Groups[0]
	return serving.GroupDescription{State: told.GroupState, Members: len(told.Members)}, told.Error
}

func (l *library) DeleteGroup(ctx context.Context, group string) error {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return answer.Errors[group]
}

func (l *library) Committed(ctx context.Context, group string, partition serving.TopicPartition) (*int64, error) {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{partition.Topic: {int(partition.Partition)}},
	})
	if err != nil {
		return nil, err
	}
	found := answer.Topics[partition.Topic][0]
	if err := errors.Join(answer.Error, found.Error); err != nil || found.CommittedOffset < 0 {
		return nil, err
	}
	return &found.CommittedOffset, nil
}

func (l *library) AlterOffset(ctx context.Context, group string, partition serving.TopicPartition, offset int64) error {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID:      group,
		GenerationID: -1, // of no member
		Topics: map[string][]kafka.OffsetCommit{
			partition.Topic: {{Partition: int(partition.Partition), Offset: offset}},
		},
	})
	if err != nil {
		return err
	}
	return answer.Topics[partition.Topic][0].Error
}

func (l *library) DescribeCluster(ctx context.Context) (serving.ClusterDescription, error) {
	client, closeClient := l.client()
	defer closeClient()
	told, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return serving.ClusterDescription{}, err
	}
	described := serving.ClusterDescription{ClusterID: told.ClusterID, Controller: int32(told.Controller.ID)}
	for _, broker := range told.Brokers {
		node := serving.Node{ID: int32(broker.ID), Host: broker.Host, Port: int32(broker.Port)}
		described.Nodes = append(described.Nodes, node)
	}
	return described, nil
}
