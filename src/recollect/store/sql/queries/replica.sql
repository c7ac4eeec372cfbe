-- standing: which cluster and database this is, whether it follows another server, along which timeline, and how far
SELECT (SELECT system_identifier FROM pg_control_system()),
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
       server.follows,
       CASE WHEN server.follows
           THEN (SELECT greatest(c.timeline_id, r.min_recovery_end_timeline)
                 FROM pg_control_checkpoint() c, pg_control_recovery() r)
           ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int END,
       (CASE WHEN server.follows THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
        - '0/0'::pg_lsn)::bigint
FROM (SELECT pg_is_in_recovery()) server (follows)

-- timeline: of a server that takes writes; NULL of one that does not
SELECT CASE WHEN NOT pg_is_in_recovery()
    THEN ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int END

-- held: whether this server still follows another, how far it has come, and the revisions of collections there
SELECT pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint, s.collection_id, s.revision
FROM (SELECT) one
LEFT JOIN collection_state s
    ON s.tenant_id = %(tenant_id)s AND s.collection_id = ANY (%(collection_ids)s::int[])

-- vectors: fails where the extension's library is not installed on the replica's machine
SELECT '[1]'::vector

-- replayed: since when nothing came from the primary, in seconds
SELECT extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8
