package main

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"odradek/serving"
)

func (l *library) ListGroups(ctx context.Context) ([]string, error) {
	groups, err := l.admin.ListGroups(ctx)
	return groups.Groups(), err
}

func (l *library) DescribeGroup(ctx context.Context, group string) (serving.GroupDescription, error) {
	described, err := l.admin.DescribeGroups(ctx, group)
	if err := errors.Join(err, described.Error()); err != nil {
		return serving.GroupDescription{}, err
	}
	told := described[group]
	instances := []string{}
	for _, member := range told.Members {
		if member.InstanceID != nil {
			instances = append(instances, *member.InstanceID)
		}
	}
	slices.Sort(instances)
	return serving.GroupDescription{
		State: told.State, Protocol: told.Protocol, Members: len(told.Members), Instances: instances,
	}, nil
}

func (l *library) DeleteGroup(ctx context.Context, group string) error {
	_, err := l.admin.DeleteGroup(ctx, group)
	return err
}

func (l *library) Committed(ctx context.Context, group string, partition serving.TopicPartition) (*int64, error) {
	offsets, err := l.admin.FetchOffsets(ctx, group)
	if err := errors.Join(err, offsets.Error()); err != nil {
		return nil, err
	}
	found, ok := offsets.Lookup(partition.Topic, partition.Partition)
	if !ok || found.At < 0 {
		return nil, nil
	}
	return &found.At, nil
}

func (l *library) AlterOffset(ctx context.Context, group string, partition serving.TopicPartition, offset int64) error {
	offsets := kadm.Offsets{}
	offsets.AddOffset(partition.Topic, partition.Partition, offset, -1)
	return l.admin.CommitAllOffsets(ctx, group, offsets)
}

func (l *library) DescribeCluster(ctx context.Context) (serving.ClusterDescription, error) {
	told, err := l.admin.BrokerMetadata(ctx)
	described := serving.ClusterDescription{ClusterID: told.Cluster, Controller: told.Controller}
	for _, broker := range told.Brokers {
		described.Nodes = append(described.Nodes, serving.Node{ID: broker.NodeID, Host: broker.Host, Port: broker.Port})
	}
	return described, err
}
