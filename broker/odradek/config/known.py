"""Settings that Kafka knows and Odradek does not use.

They are taken, checked for their type, named once in a warning and described, but have no effect. A row is the
name, the type, the default (`null`, or `""` for an empty one) and where Kafka allows it to be altered.
"""

from odradek.config.config_types import ConfigType
from odradek.config.setting import Setting, UpdateMode

__all__ = ["KNOWN"]

DESCRIBED = """
alter.config.policy.class.name class null read-only
alter.log.dirs.replication.quota.window.num int 11 read-only
alter.log.dirs.replication.quota.window.size.seconds int 1 read-only
authorizer.class.name string "" read-only
auto.leader.rebalance.enable boolean true read-only
background.threads int 10 cluster-wide
broker.heartbeat.interval.ms int 2000 read-only
broker.session.timeout.ms int 9000 read-only
client.quota.callback.class class null read-only
config.providers list "" cluster-wide
connection.failed.authentication.delay.ms int 100 read-only
connections.max.reauth.ms long 0 read-only
controlled.shutdown.enable boolean true read-only
controller.quorum.append.linger.ms int 25 read-only
controller.quorum.auto.join.enable boolean false read-only
controller.quorum.bootstrap.servers list "" read-only
controller.quorum.election.backoff.max.ms int 1000 read-only
controller.quorum.election.timeout.ms int 1000 read-only
controller.quorum.fetch.max.bytes int 1048576 read-only
controller.quorum.fetch.snapshot.max.bytes int 1048576 read-only
controller.quorum.fetch.timeout.ms int 2000 read-only
controller.quorum.request.timeout.ms int 2000 read-only
controller.quorum.retry.backoff.ms int 20 read-only
controller.quorum.voters list "" read-only
controller.quota.window.num int 11 read-only
controller.quota.window.size.seconds int 1 read-only
controller.socket.timeout.ms int 30000 read-only
create.topic.policy.class.name class null read-only
delegation.token.expiry.check.interval.ms long 3600000 read-only
delegation.token.expiry.time.ms long 86400000 read-only
delegation.token.max.lifetime.ms long 604800000 read-only
delegation.token.secret.key password null read-only
delete.records.purgatory.purge.interval.requests int 1 read-only
early.start.listeners list null read-only
errors.deadletterqueue.auto.create.topics.enable boolean false cluster-wide
errors.deadletterqueue.topic.name.prefix string dlq. cluster-wide
fetch.purgatory.purge.interval.requests int 1000 read-only
follower.fetch.last.tiered.offset.enable boolean false cluster-wide
group.coordinator.append.linger.ms int -1 read-only
group.coordinator.background.threads int 2 read-only
group.coordinator.cached.buffer.max.bytes int 1048588 cluster-wide
group.coordinator.rebalance.protocols list classic,consumer,streams read-only
group.coordinator.threads int 4 read-only
group.share.assignors list simple read-only
group.streams.assignors list sticky read-only
group.streams.rack.aware.assignment.tags list "" read-only
group.streams.topology.description.plugin.class class null read-only
initial.broker.registration.timeout.ms int 60000 read-only
kafka.metrics.polling.interval.secs int 10 read-only
kafka.metrics.reporters list "" read-only
leader.imbalance.check.interval.seconds long 300 read-only
log.dir.failure.timeout.ms long 30000 read-only
log.local.retention.bytes long -2 cluster-wide
log.local.retention.ms long -2 cluster-wide
log.remote.copy.lag.bytes long -1 cluster-wide
log.remote.copy.lag.ms long 0 cluster-wide
metadata.log.dir string null read-only
metadata.log.max.record.bytes.between.snapshots long 20971520 read-only
metadata.log.max.snapshot.interval.ms long 3600000 read-only
metadata.log.segment.bytes int 1073741824 read-only
metadata.log.segment.ms long 604800000 read-only
metadata.max.idle.interval.ms int 500 read-only
metadata.max.retention.bytes long 104857600 read-only
metadata.max.retention.ms long 604800000 read-only
metric.reporters list org.apache.kafka.common.metrics.JmxReporter cluster-wide
metrics.num.samples int 2 read-only
metrics.recording.level string INFO read-only
metrics.sample.window.ms long 30000 read-only
num.io.threads int 8 cluster-wide
num.network.threads int 3 cluster-wide
num.replica.alter.log.dirs.threads int null read-only
num.replica.fetchers int 1 cluster-wide
principal.builder.class class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder per-broker
process.roles list null read-only
producer.purgatory.purge.interval.requests int 1000 read-only
queued.max.requests int 500 read-only
quota.window.num int 11 read-only
quota.window.size.seconds int 1 read-only
remote.fetch.max.wait.ms int 500 cluster-wide
remote.list.offsets.request.timeout.ms long 30000 cluster-wide
remote.log.index.file.cache.total.size.bytes long 1073741824 cluster-wide
remote.log.manager.copier.thread.pool.size int 10 cluster-wide
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 cluster-wide
remote.log.manager.copy.quota.window.num int 11 read-only
remote.log.manager.copy.quota.window.size.seconds int 1 read-only
remote.log.manager.expiration.thread.pool.size int 10 cluster-wide
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 cluster-wide
remote.log.manager.fetch.quota.window.num int 11 read-only
remote.log.manager.fetch.quota.window.size.seconds int 1 read-only
remote.log.manager.follower.thread.pool.size int 2 cluster-wide
remote.log.manager.task.interval.ms long 30000 read-only
remote.log.manager.thread.pool.size int 2 read-only
remote.log.metadata.custom.metadata.max.bytes int 128 read-only
remote.log.metadata.manager.class.name string org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager read-only
remote.log.metadata.manager.class.path string null read-only
remote.log.metadata.manager.impl.prefix string rlmm.config. read-only
remote.log.metadata.manager.listener.name string null read-only
remote.log.reader.max.pending.tasks int 100 read-only
remote.log.reader.threads int 10 cluster-wide
remote.log.storage.manager.class.name string null read-only
remote.log.storage.manager.class.path string null read-only
remote.log.storage.manager.impl.prefix string rsm.config. read-only
remote.log.storage.system.enable boolean false read-only
replica.fetch.backoff.ms int 1000 read-only
replica.fetch.max.bytes int 1048576 read-only
replica.fetch.min.bytes int 1 read-only
replica.fetch.response.max.bytes int 10485760 read-only
replica.fetch.wait.max.ms int 500 read-only
replica.lag.time.max.ms long 30000 read-only
replica.selector.class string null read-only
replica.socket.receive.buffer.bytes int 65536 read-only
replica.socket.timeout.ms int 30000 read-only
replication.quota.window.num int 11 read-only
replication.quota.window.size.seconds int 1 read-only
sasl.client.callback.handler.class class null read-only
sasl.enabled.mechanisms list GSSAPI per-broker
sasl.jaas.config password null per-broker
sasl.kerberos.kinit.cmd string /usr/bin/kinit per-broker
sasl.kerberos.min.time.before.relogin long 60000 per-broker
sasl.kerberos.principal.to.local.rules list DEFAULT per-broker
sasl.kerberos.service.name string null per-broker
sasl.kerberos.ticket.renew.jitter double 0.05 per-broker
sasl.kerberos.ticket.renew.window.factor double 0.8 per-broker
sasl.login.callback.handler.class class null read-only
sasl.login.class class null read-only
sasl.login.connect.timeout.ms int null read-only
sasl.login.read.timeout.ms int null read-only
sasl.login.refresh.buffer.seconds short 300 per-broker
sasl.login.refresh.min.period.seconds short 60 per-broker
sasl.login.refresh.window.factor double 0.8 per-broker
sasl.login.refresh.window.jitter double 0.05 per-broker
sasl.login.retry.backoff.max.ms long 10000 read-only
sasl.login.retry.backoff.ms long 100 read-only
sasl.mechanism.controller.protocol string GSSAPI read-only
sasl.mechanism.inter.broker.protocol string GSSAPI per-broker
sasl.oauthbearer.allow.unverified.audience boolean false read-only
sasl.oauthbearer.allow.unverified.issuer boolean false read-only
sasl.oauthbearer.assertion.algorithm string RS256 read-only
sasl.oauthbearer.assertion.claim.aud string null read-only
sasl.oauthbearer.assertion.claim.exp.seconds int 300 read-only
sasl.oauthbearer.assertion.claim.iss string null read-only
sasl.oauthbearer.assertion.claim.jti.include boolean false read-only
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 read-only
sasl.oauthbearer.assertion.claim.sub string null read-only
sasl.oauthbearer.assertion.file string null read-only
sasl.oauthbearer.assertion.private.key.file string null read-only
sasl.oauthbearer.assertion.private.key.passphrase password null read-only
sasl.oauthbearer.assertion.template.file string null read-only
sasl.oauthbearer.client.credentials.client.id string null read-only
sasl.oauthbearer.client.credentials.client.secret password null read-only
sasl.oauthbearer.clock.skew.seconds int 30 read-only
sasl.oauthbearer.expected.audience list "" read-only
sasl.oauthbearer.expected.issuer string null read-only
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 read-only
sasl.oauthbearer.jwks.endpoint.url string null read-only
sasl.oauthbearer.jwt.retriever.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever read-only
sasl.oauthbearer.jwt.validator.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator read-only
sasl.oauthbearer.scope string null read-only
sasl.oauthbearer.scope.claim.name string scope read-only
sasl.oauthbearer.sub.claim.name string sub read-only
sasl.oauthbearer.token.endpoint.url string null read-only
sasl.server.callback.handler.class class null read-only
sasl.server.max.receive.size int 524288 read-only
security.providers string null read-only
share.coordinator.append.linger.ms int -1 read-only
share.coordinator.cached.buffer.max.bytes int 1048588 cluster-wide
share.coordinator.threads int 1 read-only
share.fetch.purgatory.purge.interval.requests int 1000 read-only
socket.connection.setup.timeout.max.ms long 30000 read-only
socket.connection.setup.timeout.ms long 10000 read-only
ssl.allow.dn.changes boolean false read-only
ssl.allow.san.changes boolean false read-only
ssl.cipher.suites list "" per-broker
ssl.client.auth string none per-broker
ssl.enabled.protocols list TLSv1.2,TLSv1.3 per-broker
ssl.endpoint.identification.algorithm string https per-broker
ssl.engine.factory.class class null per-broker
ssl.key.password password null per-broker
ssl.keymanager.algorithm string SunX509 per-broker
ssl.keystore.certificate.chain password null per-broker
ssl.keystore.key password null per-broker
ssl.keystore.location string null per-broker
ssl.keystore.password password null per-broker
ssl.keystore.type string JKS per-broker
ssl.principal.mapping.rules string DEFAULT read-only
ssl.protocol string TLSv1.3 per-broker
ssl.provider string null per-broker
ssl.secure.random.implementation string null per-broker
ssl.trustmanager.algorithm string PKIX per-broker
ssl.truststore.certificates password null per-broker
ssl.truststore.location string null per-broker
ssl.truststore.password password null per-broker
ssl.truststore.type string JKS per-broker
telemetry.max.bytes int 1048576 read-only
transaction.two.phase.commit.enable boolean false read-only
"""  # noqa: E501 - a row is a line, and some of Kafka's class names are long
"""Those that Kafka 4 describes."""

HIDDEN = """
follower.replication.throttled.rate long 9223372036854775807 cluster-wide
leader.replication.throttled.rate long 9223372036854775807 cluster-wide
replica.alter.log.dirs.io.max.bytes.per.second long 9223372036854775807 cluster-wide
auto.include.jmx.reporter boolean true read-only
broker.id.generation.enable boolean true read-only
control.plane.listener.name string null read-only
controlled.shutdown.max.retries int 3 read-only
controlled.shutdown.retry.backoff.ms long 5000 read-only
controller.performance.always.log.threshold.ms long 2000 read-only
controller.performance.sample.period.ms long 60000 read-only
delegation.token.master.key password null read-only
eligible.leader.replicas.enable boolean false read-only
group.coordinator.new.enable boolean false read-only
group.share.enable boolean false read-only
group.share.max.groups short 10 read-only
group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister read-only
inter.broker.protocol.version string 3.9-IV0 read-only
internal.metadata.delete.delay.millis long 60000 read-only
internal.metadata.log.segment.bytes int null read-only
internal.metadata.max.batch.size.in.bytes int 8388608 read-only
leader.imbalance.per.broker.percentage int 10 read-only
log.message.downconversion.enable boolean true cluster-wide
log.message.format.version string 3.0-IV1 read-only
metadata.log.segment.min.bytes int 8388608 read-only
offsets.commit.required.acks short -1 read-only
password.encoder.cipher.algorithm string AES/CBC/PKCS5Padding read-only
password.encoder.iterations int 4096 read-only
password.encoder.key.length int 128 read-only
password.encoder.keyfactory.algorithm string null read-only
password.encoder.old.secret password null read-only
password.encoder.secret password null read-only
remote.log.index.file.cache.ttl.ms long 900000 read-only
remote.log.manager.task.retry.backoff.max.ms long 30000 read-only
remote.log.manager.task.retry.backoff.ms long 500 read-only
remote.log.manager.task.retry.jitter double 0.2 read-only
reserved.broker.max.id int 1000 read-only
server.max.startup.time.ms long 9223372036854775807 read-only
unclean.leader.election.interval.ms long 300000 read-only
unstable.api.versions.enable boolean false read-only
unstable.feature.versions.enable boolean false read-only
zookeeper.clientCnxnSocket string null read-only
zookeeper.connect string null read-only
zookeeper.connection.timeout.ms int null read-only
zookeeper.max.in.flight.requests int 10 read-only
zookeeper.metadata.migration.enable boolean false read-only
zookeeper.metadata.migration.min.batch.size int 200 read-only
zookeeper.session.timeout.ms int 18000 read-only
zookeeper.set.acl boolean false read-only
zookeeper.ssl.cipher.suites list null read-only
zookeeper.ssl.client.enable boolean false read-only
zookeeper.ssl.crl.enable boolean false read-only
zookeeper.ssl.enabled.protocols list null read-only
zookeeper.ssl.endpoint.identification.algorithm string HTTPS read-only
zookeeper.ssl.keystore.location string null read-only
zookeeper.ssl.keystore.password password null read-only
zookeeper.ssl.keystore.type string null read-only
zookeeper.ssl.ocsp.enable boolean false read-only
zookeeper.ssl.protocol string TLSv1.2 read-only
zookeeper.ssl.truststore.location string null read-only
zookeeper.ssl.truststore.password password null read-only
zookeeper.ssl.truststore.type string null read-only
"""
"""Those that are described only where they were given: Kafka 3.9's, Kafka's internal ones, and throttles."""


def read_rows(rows: str, *, hidden: bool) -> dict[str, Setting]:
    """The settings of a table, by key."""
    settings = {}
    for row in rows.splitlines():
        if row:
            key, type_name, default, update = row.split()
            entry = Setting(key, ConfigType[type_name.upper()], default=None, update=UpdateMode(update), hidden=hidden)
            entry.default = None if default == "null" else entry.parse("" if default == '""' else default)
            settings[key] = entry
    return settings


KNOWN = read_rows(DESCRIBED, hidden=False) | read_rows(HIDDEN, hidden=True)
"""All of them, by key."""
