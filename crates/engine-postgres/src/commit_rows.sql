-- A commit of several rows. Locks the rows that exist in key order, checks all expectations in the order of the ops, writes.
-- It returns what failed and raises nothing, because an error puts the statement into the server's log.
--   expects: 0 anything, 1 absent, 2 present, 3 exactly this version.   effects: 0 put, 1 delete, 2 nothing.
--   outcome: 0 done, 1 an expectation failed, 2 a table is gone, 3 somebody inserted one of the rows meanwhile: try again,
--   4 a table is in another place, or moves: commit_rows_in_places knows what to do.
-- No circle of waits: locks are taken in key order, before the first insert; inserts come in key order and wait only for
-- inserts.
-- What is not there cannot be locked, and the statement that locks does not see what was inserted while it waited. So every
-- row that was not found is inserted, and removed again if it was not to be put: that fails when the row is there by now, and
-- nobody else can insert it before the end. A refusal inserts nothing, so it looks again in a later view.
CREATE FUNCTION {schema}.any_appeared_in_{rows}(tables bigint[], pks bytea[], rks bytea[], founds bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM unnest(tables, pks, rks, founds) AS o(t, pk, rk, found)
        CROSS JOIN LATERAL (
            SELECT FROM {schema}.{rows} r WHERE r.table_id = o.t AND r.pk = o.pk AND r.rk = o.rk
            UNION ALL
            SELECT FROM {schema}.long_rows r WHERE octet_length(o.pk) + octet_length(o.rk) > 2600
                AND r.table_id = o.t AND r.digest = sha256(o.pk || '\x00'::bytea || o.rk)
        ) r
        WHERE o.found IS NULL);
END $$;

CREATE FUNCTION {schema}.commit_{rows}(
    now_ticks bigint, new_stamp bigint, fenced bigint[], has_long boolean,
    tables bigint[], pks bytea[], rks bytea[], expects integer[], versions bigint[], effects integer[], bodies bytea[],
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT new_version bigint
) LANGUAGE plpgsql AS $$
DECLARE
    op_count integer := cardinality(tables);
    founds bigint[] := array_fill(NULL::bigint, ARRAY[op_count]);
    insert_count integer := 0;
    change_count integer := 0;
    done_count integer;
    done_long_count integer := 0;
    seen record;
    holds boolean;
BEGIN
    -- A lateral query each, so that the plan goes from the keys to the rows, whatever the planner believes about the sizes.
    FOR seen IN
        SELECT o.n, r.version
        FROM (SELECT * FROM unnest(tables, pks, rks) WITH ORDINALITY AS u(t, pk, rk, n) ORDER BY t, pk, rk) o
        CROSS JOIN LATERAL (
            SELECT r.version FROM {schema}.{rows} r WHERE r.table_id = o.t AND r.pk = o.pk AND r.rk = o.rk FOR UPDATE
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
    -- After the rows were locked, and not before: whoever moves a table waits for those who hold a lock in its relation, and
    -- everybody else sees here that it moves (wait_for_writers).
    IF EXISTS (SELECT FROM unnest(fenced) AS id WHERE NOT EXISTS (
               SELECT FROM {schema}.fences f WHERE f.table_id = id AND f.place = {place} AND f.moves_to IS NULL)) THEN
        outcome := CASE WHEN EXISTS (
            SELECT FROM unnest(fenced) AS id WHERE NOT EXISTS (SELECT FROM {schema}.fences f WHERE f.table_id = id)
        ) THEN 2 ELSE 4 END;
        RETURN;
    END IF;
    FOR n IN 1 .. op_count LOOP
        holds := CASE expects[n] WHEN 0 THEN true WHEN 1 THEN founds[n] IS NULL
                 WHEN 2 THEN founds[n] IS NOT NULL ELSE coalesce(founds[n] = versions[n], false) END;
        IF NOT holds THEN
            outcome := CASE WHEN {schema}.any_appeared_in_{rows}(tables, pks, rks, founds) THEN 3 ELSE 1 END;
            op := n - 1;
            found_version := founds[n];
            RETURN;
        END IF;
        IF founds[n] IS NULL THEN
            insert_count := insert_count + 1;
        END IF;
        IF effects[n] <> (CASE WHEN founds[n] IS NULL THEN 0 ELSE 2 END) THEN
            change_count := change_count + 1;
        END IF;
    END LOOP;
    new_version := {schema}.next_version(now_ticks);
    IF insert_count > 0 THEN
        BEGIN
            INSERT INTO {schema}.{rows} (table_id, version, stamp, pk, rk, body)
            SELECT o.t, new_version, new_stamp, o.pk, o.rk, coalesce(o.body, '')
            FROM unnest(tables, pks, rks, bodies, founds) AS o(t, pk, rk, body, found)
            WHERE o.found IS NULL AND octet_length(o.pk) + octet_length(o.rk) <= 2600
            ORDER BY o.t, o.pk, o.rk
            ON CONFLICT DO NOTHING;
            GET DIAGNOSTICS done_count = ROW_COUNT;
            IF has_long THEN
                INSERT INTO {schema}.long_rows (table_id, version, stamp, digest, head, pk, rk, body)
                SELECT o.t, new_version, new_stamp, sha256(o.pk || '\x00'::bytea || o.rk),
                       substr(o.pk || '\x00'::bytea || o.rk, 1, 1024), o.pk, o.rk, coalesce(o.body, '')
                FROM unnest(tables, pks, rks, bodies, founds) AS o(t, pk, rk, body, found)
                WHERE o.found IS NULL AND octet_length(o.pk) + octet_length(o.rk) > 2600
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
    IF change_count > 0 THEN
        -- Row by row, for the sake of the plan again. The rows are locked, so nothing can fail here.
        FOR seen IN
            SELECT o.* FROM unnest(tables, pks, rks, effects, bodies, founds) AS o(t, pk, rk, effect, body, found)
            WHERE o.effect <> CASE WHEN o.found IS NULL THEN 0 ELSE 2 END
        LOOP
            IF seen.effect = 0 AND octet_length(seen.pk) + octet_length(seen.rk) <= 2600 THEN
                UPDATE {schema}.{rows} r SET version = new_version, stamp = new_stamp, body = seen.body
                WHERE r.table_id = seen.t AND r.pk = seen.pk AND r.rk = seen.rk;
            ELSIF seen.effect = 0 THEN
                UPDATE {schema}.long_rows r SET version = new_version, stamp = new_stamp, body = seen.body
                WHERE r.table_id = seen.t AND r.digest = sha256(seen.pk || '\x00'::bytea || seen.rk);
            ELSIF octet_length(seen.pk) + octet_length(seen.rk) <= 2600 THEN
                DELETE FROM {schema}.{rows} r WHERE r.table_id = seen.t AND r.pk = seen.pk AND r.rk = seen.rk;
            ELSE
                DELETE FROM {schema}.long_rows r
                WHERE r.table_id = seen.t AND r.digest = sha256(seen.pk || '\x00'::bytea || seen.rk);
            END IF;
        END LOOP;
    END IF;
    outcome := 0;
END $$;
