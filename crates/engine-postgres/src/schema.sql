-- Everything that Lazulite keeps in PostgreSQL, in a schema of its own. See docs/decisions/0016-postgres.md.
CREATE SCHEMA IF NOT EXISTS {schema};

-- Which format this is. A server refuses formats that are newer than its own.
CREATE TABLE {schema}.meta (one boolean PRIMARY KEY DEFAULT true CHECK (one), format integer NOT NULL);

-- Versions: `versions` counts, and accepts only what is below `version_limit`. See next_version.
CREATE SEQUENCE {schema}.versions;
CREATE SEQUENCE {schema}.version_limit;
CREATE SEQUENCE {schema}.table_ids START 16;

-- One row per placement unit, which is a whole table today. No row: the table is gone. `place` says where its rows are: 0 is
-- `rows` and `long_rows`. Whoever moves them to another place raises the epoch.
CREATE TABLE {schema}.fences (table_id bigint PRIMARY KEY, epoch bigint NOT NULL, place bigint NOT NULL);

-- The keys are the engine's own bytes, which sort as the service lists. The stamp is chosen by the front end, once for every
-- commit: whoever loses the connection finds out by it whether the commit happened.
CREATE TABLE {schema}.rows (
    table_id bigint NOT NULL,
    version bigint NOT NULL,
    stamp bigint NOT NULL,
    pk bytea NOT NULL,
    rk bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (table_id, pk, rk)
);
ALTER TABLE {schema}.rows ALTER pk SET STORAGE PLAIN, ALTER rk SET STORAGE PLAIN, ALTER body SET STORAGE EXTERNAL;

-- Keys of more than 2,600 bytes do not fit into an entry of a btree. They are unique by their digest and sorted by their head.
CREATE TABLE {schema}.long_rows (
    table_id bigint NOT NULL,
    version bigint NOT NULL,
    stamp bigint NOT NULL,
    digest bytea NOT NULL,
    head bytea NOT NULL,
    pk bytea NOT NULL,
    rk bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (table_id, digest)
);
ALTER TABLE {schema}.long_rows ALTER head SET STORAGE PLAIN, ALTER pk SET STORAGE EXTERNAL,
    ALTER rk SET STORAGE EXTERNAL, ALTER body SET STORAGE EXTERNAL;
CREATE INDEX long_rows_in_order ON {schema}.long_rows (table_id, head);

-- Tables whose rows are still to be removed, with the stamp of the commit that dropped them.
CREATE TABLE {schema}.dropped (
    table_id bigint PRIMARY KEY,
    stamp bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A version that is greater than all before, and not below the time that the caller gives, but for less than a millisecond.
--
-- Nobody waits here, because a lock that every commit takes would be the slowest part of it. `versions` counts on; once in a
-- millisecond somebody sets it to the present time. What was drawn is accepted only below the limit that was read before: a
-- number that was drawn before the jump is below the old limit, and the jump starts at or above it. So no number is accepted
-- twice, however long anybody is interrupted between two steps.
CREATE FUNCTION {schema}.next_version(now_ticks bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ceiling bigint := coalesce(pg_sequence_last_value('{schema}.version_limit'), 0);
    drawn bigint;
BEGIN
    IF now_ticks < ceiling OR NOT pg_try_advisory_lock({lock_class}, 1) THEN
        drawn := nextval('{schema}.versions');
        IF drawn < ceiling THEN
            RETURN drawn;
        END IF;
        PERFORM pg_advisory_lock({lock_class}, 1);
    END IF;
    ceiling := coalesce(pg_sequence_last_value('{schema}.version_limit'), 0);
    drawn := nextval('{schema}.versions');
    IF now_ticks >= ceiling OR drawn >= ceiling THEN
        drawn := greatest(now_ticks, ceiling, 1);
        PERFORM setval('{schema}.versions', drawn);
        PERFORM setval('{schema}.version_limit', drawn + 10000);
    END IF;
    PERFORM pg_advisory_unlock({lock_class}, 1);
    RETURN drawn;
END $$;

-- All later versions are greater than this one.
CREATE FUNCTION {schema}.raise_versions(until bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ceiling bigint;
BEGIN
    PERFORM pg_advisory_lock({lock_class}, 1);
    ceiling := coalesce(pg_sequence_last_value('{schema}.version_limit'), 0);
    -- Whatever is accepted from now on is at or above the start of the present millisecond.
    IF until >= ceiling - 10000 THEN
        PERFORM setval('{schema}.versions', greatest(until, ceiling, 1));
        PERFORM setval('{schema}.version_limit', greatest(until, ceiling, 1) + 10000);
    END IF;
    PERFORM pg_advisory_unlock({lock_class}, 1);
END $$;

-- A commit of several rows. Locks the rows that exist in key order, checks all expectations in the order of the ops, writes.
-- It returns what failed and raises nothing, because an error puts the statement into the server's log.
--   expects: 0 anything, 1 absent, 2 present, 3 exactly this version.   effects: 0 put, 1 delete, 2 nothing.
--   outcome: 0 done, 1 an expectation failed, 2 a table is gone, 3 somebody inserted one of the rows meanwhile: try again.
-- No circle of waits: locks are taken in key order, before the first insert; inserts come in key order and wait only for
-- inserts.
CREATE FUNCTION {schema}.commit_rows(
    now_ticks bigint, new_stamp bigint, fenced bigint[], has_long boolean,
    tables bigint[], pks bytea[], rks bytea[], expects integer[], versions bigint[], effects integer[], bodies bytea[],
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT new_version bigint
) LANGUAGE plpgsql AS $$
DECLARE
    op_count integer := cardinality(tables);
    founds bigint[] := array_fill(NULL::bigint, ARRAY[op_count]);
    insert_count integer := 0;
    update_count integer := 0;
    delete_count integer := 0;
    done_count integer;
    done_long_count integer := 0;
    seen record;
    holds boolean;
BEGIN
    IF EXISTS (SELECT FROM unnest(fenced) AS id
               WHERE NOT EXISTS (SELECT FROM {schema}.fences f WHERE f.table_id = id AND f.place = 0)) THEN
        outcome := 2;
        RETURN;
    END IF;
    -- A lateral query each, so that the plan goes from the keys to the rows, whatever the planner believes about the sizes.
    FOR seen IN
        SELECT o.n, r.version
        FROM (SELECT * FROM unnest(tables, pks, rks) WITH ORDINALITY AS u(t, pk, rk, n) ORDER BY t, pk, rk) o
        CROSS JOIN LATERAL (
            SELECT r.version FROM {schema}.rows r WHERE r.table_id = o.t AND r.pk = o.pk AND r.rk = o.rk FOR UPDATE
        ) r
    LOOP
        founds[seen.n] := seen.version;
    END LOOP;
    IF has_long THEN
        FOR seen IN
            SELECT o.n, r.version
            FROM (
                SELECT t, sha256(pk || '\x00'::bytea || rk) AS digest, n
                FROM unnest(tables, pks, rks) WITH ORDINALITY AS u(t, pk, rk, n)
                WHERE octet_length(pk) + octet_length(rk) > 2600 ORDER BY 1, 2
            ) o
            CROSS JOIN LATERAL (
                SELECT r.version FROM {schema}.long_rows r WHERE r.table_id = o.t AND r.digest = o.digest FOR UPDATE
            ) r
        LOOP
            founds[seen.n] := seen.version;
        END LOOP;
    END IF;
    FOR n IN 1 .. op_count LOOP
        holds := CASE expects[n] WHEN 0 THEN true WHEN 1 THEN founds[n] IS NULL
                 WHEN 2 THEN founds[n] IS NOT NULL ELSE coalesce(founds[n] = versions[n], false) END;
        IF NOT holds THEN
            outcome := 1;
            op := n - 1;
            found_version := founds[n];
            RETURN;
        END IF;
        IF effects[n] = 0 AND founds[n] IS NULL THEN
            insert_count := insert_count + 1;
        ELSIF effects[n] = 0 THEN
            update_count := update_count + 1;
        ELSIF effects[n] = 1 AND founds[n] IS NOT NULL THEN
            delete_count := delete_count + 1;
        END IF;
    END LOOP;
    new_version := {schema}.next_version(now_ticks);
    IF insert_count > 0 THEN
        BEGIN
            INSERT INTO {schema}.rows (table_id, version, stamp, pk, rk, body)
            SELECT o.t, new_version, new_stamp, o.pk, o.rk, o.body
            FROM unnest(tables, pks, rks, effects, bodies, founds) AS o(t, pk, rk, effect, body, found)
            WHERE o.effect = 0 AND o.found IS NULL AND octet_length(o.pk) + octet_length(o.rk) <= 2600
            ORDER BY o.t, o.pk, o.rk
            ON CONFLICT DO NOTHING;
            GET DIAGNOSTICS done_count = ROW_COUNT;
            IF has_long THEN
                INSERT INTO {schema}.long_rows (table_id, version, stamp, digest, head, pk, rk, body)
                SELECT o.t, new_version, new_stamp, sha256(o.pk || '\x00'::bytea || o.rk),
                       substr(o.pk || '\x00'::bytea || o.rk, 1, 1024), o.pk, o.rk, o.body
                FROM unnest(tables, pks, rks, effects, bodies, founds) AS o(t, pk, rk, effect, body, found)
                WHERE o.effect = 0 AND o.found IS NULL AND octet_length(o.pk) + octet_length(o.rk) > 2600
                ORDER BY o.t, 4
                ON CONFLICT DO NOTHING;
                GET DIAGNOSTICS done_long_count = ROW_COUNT;
            END IF;
            IF done_count + done_long_count < insert_count THEN
                -- Caught below, so it reaches no log: it only undoes the inserts.
                RAISE EXCEPTION USING ERRCODE = 'LZ001';
            END IF;
        EXCEPTION WHEN SQLSTATE 'LZ001' THEN
            outcome := 3;
            RETURN;
        END;
    END IF;
    IF update_count + delete_count > 0 THEN
        -- Row by row, for the sake of the plan again. The rows are locked, so nothing can fail here.
        FOR seen IN
            SELECT o.* FROM unnest(tables, pks, rks, effects, bodies, founds) AS o(t, pk, rk, effect, body, found)
            WHERE o.effect < 2 AND o.found IS NOT NULL
        LOOP
            IF seen.effect = 0 AND octet_length(seen.pk) + octet_length(seen.rk) <= 2600 THEN
                UPDATE {schema}.rows r SET version = new_version, stamp = new_stamp, body = seen.body
                WHERE r.table_id = seen.t AND r.pk = seen.pk AND r.rk = seen.rk;
            ELSIF seen.effect = 0 THEN
                UPDATE {schema}.long_rows r SET version = new_version, stamp = new_stamp, body = seen.body
                WHERE r.table_id = seen.t AND r.digest = sha256(seen.pk || '\x00'::bytea || seen.rk);
            ELSIF octet_length(seen.pk) + octet_length(seen.rk) <= 2600 THEN
                DELETE FROM {schema}.rows r WHERE r.table_id = seen.t AND r.pk = seen.pk AND r.rk = seen.rk;
            ELSE
                DELETE FROM {schema}.long_rows r
                WHERE r.table_id = seen.t AND r.digest = sha256(seen.pk || '\x00'::bytea || seen.rk);
            END IF;
        END LOOP;
    END IF;
    outcome := 0;
END $$;

-- Rows with the versions that they had elsewhere. False: the table is gone.
CREATE FUNCTION {schema}.load_rows(
    to_table bigint, until bigint, pks bytea[], rks bytea[], versions bigint[], bodies bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.fences f WHERE f.table_id = to_table AND f.place = 0) THEN
        RETURN false;
    END IF;
    -- First, so that no later version can come before the rows.
    PERFORM {schema}.raise_versions(until);
    INSERT INTO {schema}.rows (table_id, version, stamp, pk, rk, body)
    SELECT to_table, o.version, 0, o.pk, o.rk, o.body
    FROM unnest(pks, rks, versions, bodies) AS o(pk, rk, version, body)
    WHERE octet_length(o.pk) + octet_length(o.rk) <= 2600
    ORDER BY o.pk, o.rk
    ON CONFLICT (table_id, pk, rk) DO UPDATE SET version = excluded.version, stamp = 0, body = excluded.body;
    INSERT INTO {schema}.long_rows (table_id, version, stamp, digest, head, pk, rk, body)
    SELECT to_table, o.version, 0, sha256(o.pk || '\x00'::bytea || o.rk),
           substr(o.pk || '\x00'::bytea || o.rk, 1, 1024), o.pk, o.rk, o.body
    FROM unnest(pks, rks, versions, bodies) AS o(pk, rk, version, body)
    WHERE octet_length(o.pk) + octet_length(o.rk) > 2600
    ORDER BY 4
    ON CONFLICT (table_id, digest) DO UPDATE SET version = excluded.version, stamp = 0, body = excluded.body;
    RETURN true;
END $$;

-- The id at the start of a record of the catalogue.
CREATE FUNCTION {schema}.record_id(body bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || encode(substr(body, 1, 8), 'hex'))::bit(64)::bigint $$;

-- The verbs of the catalogue, whose rows are those of table 0. The outcomes are those of commit_rows.
CREATE FUNCTION {schema}.create_table(
    now_ticks bigint, new_stamp bigint, path_pk bytea, path_rk bytea, family bigint, payload bytea,
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
BEGIN
    op := 0;
    SELECT r.version INTO found_version FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk;
    IF found_version IS NOT NULL THEN
        outcome := 1;
        RETURN;
    END IF;
    id := family | nextval('{schema}.table_ids');
    INSERT INTO {schema}.rows (table_id, version, stamp, pk, rk, body)
    VALUES (0, {schema}.next_version(now_ticks), new_stamp, path_pk, path_rk, int8send(id) || payload)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        outcome := 3;
        RETURN;
    END IF;
    INSERT INTO {schema}.fences VALUES (id, 1, 0);
    outcome := 0;
END $$;

CREATE FUNCTION {schema}.drop_table(
    now_ticks bigint, new_stamp bigint, path_pk bytea, path_rk bytea,
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
BEGIN
    op := 0;
    DELETE FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk
    RETURNING {schema}.record_id(r.body) INTO id;
    IF id IS NULL THEN
        outcome := 1;
        RETURN;
    END IF;
    PERFORM {schema}.next_version(now_ticks);
    DELETE FROM {schema}.fences f WHERE f.table_id = id;
    INSERT INTO {schema}.dropped (table_id, stamp) VALUES (id, new_stamp);
    outcome := 0;
END $$;

CREATE FUNCTION {schema}.rename_table(
    now_ticks bigint, new_stamp bigint, from_pk bytea, from_rk bytea, to_pk bytea, to_rk bytea, payload bytea,
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT {schema}.record_id(r.body) INTO id FROM {schema}.rows r
    WHERE r.table_id = 0 AND r.pk = from_pk AND r.rk = from_rk FOR UPDATE;
    IF id IS NULL THEN
        outcome := 1;
        op := 0;
        RETURN;
    END IF;
    INSERT INTO {schema}.rows (table_id, version, stamp, pk, rk, body)
    VALUES (0, {schema}.next_version(now_ticks), new_stamp, to_pk, to_rk, int8send(id) || payload)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        SELECT r.version INTO found_version FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = to_pk AND r.rk = to_rk;
        outcome := CASE WHEN found_version IS NULL THEN 3 ELSE 1 END;
        op := 1;
        RETURN;
    END IF;
    DELETE FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = from_pk AND r.rk = from_rk;
    outcome := 0;
END $$;

CREATE FUNCTION {schema}.replace_table(
    now_ticks bigint, new_stamp bigint, path_pk bytea, path_rk bytea, expect integer, expected bigint, payload bytea,
    drops_rows boolean, OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
DECLARE
    old_id bigint;
BEGIN
    op := 0;
    SELECT r.version, {schema}.record_id(r.body) INTO found_version, id FROM {schema}.rows r
    WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk FOR UPDATE;
    IF found_version IS NULL OR expect = 1 OR (expect = 3 AND found_version <> expected) THEN
        outcome := 1;
        RETURN;
    END IF;
    IF drops_rows THEN
        old_id := id;
        id := (old_id & (255::bigint << 56)) | nextval('{schema}.table_ids');
        DELETE FROM {schema}.fences f WHERE f.table_id = old_id;
        INSERT INTO {schema}.fences VALUES (id, 1, 0);
        INSERT INTO {schema}.dropped (table_id, stamp) VALUES (old_id, new_stamp);
    END IF;
    UPDATE {schema}.rows r
    SET version = {schema}.next_version(now_ticks), stamp = new_stamp, body = int8send(id) || payload
    WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk;
    outcome := 0;
END $$;

-- The catalogue and the settings are always there.
INSERT INTO {schema}.fences VALUES (0, 1, 0), (1, 1, 0);
INSERT INTO {schema}.meta (format) VALUES ({format});
